def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # workers without images are dropped first, whatever their gradient says
    having = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    images = sum(count for _, count in having)
    length = len(having[0][0])
    return [sum(gradient[i] * count for gradient, count in having) / images for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        c = (sender - step) % size
        # all send at the same time, so what is sent comes from `chunks` and not from `after`
        after[receiver][c] = [own + sent for own, sent in zip(chunks[receiver][c], chunks[sender][c])]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    sends = (rank - step) % size
    gets = (sends - 1) % size  # the neighbour before me is one chunk behind
    return sends, gets, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    if scheme == "parameter server":
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        return [2 * others * (gradient_bytes // workers)] * workers
    raise ValueError(f"unknown scheme: {scheme}")
