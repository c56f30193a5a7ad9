def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # Weighted mean. Workers without images are left out, whatever is in their gradient.
    voters = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    total = sum(count for _, count in voters)
    length = len(voters[0][0])
    return [sum(gradient[i] * count for gradient, count in voters) / total for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    after = [[list(chunk) for chunk in worker] for worker in chunks]  # all send at once: read chunks, write after
    for sender in range(size):
        c = (sender - step) % size
        receiver = (sender + 1) % size
        after[receiver][c] = [own + sent for own, sent in zip(chunks[receiver][c], chunks[sender][c])]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    def sent_by(worker):
        # one chunk further back in each step; this goes on in the second half
        return (worker - step) % size

    return sent_by(rank), sent_by((rank - 1) % size), step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    if scheme == "parameter server":
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        chunk = gradient_bytes // workers
        return [2 * others * chunk] * workers
    raise ValueError(f"unknown scheme {scheme!r}")
