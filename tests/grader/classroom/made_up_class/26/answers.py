def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total = sum(counts)
    # Skip workers without images instead of multiplying by 0: their mean may be nan.
    active = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    length = len(active[0][0])
    return [sum(gradient[i] * count for gradient, count in active) / total for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    result = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        c = (sender - step) % size  # each step the sent chunk is one lower
        result[receiver][c] = [own + sent for own, sent in zip(chunks[receiver][c], chunks[sender][c])]
    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    sends = (rank - step) % size
    gets = (rank - 1 - step) % size  # what the left neighbour sends
    return sends, gets, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    if scheme == "parameter server":
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        chunk = gradient_bytes // workers
        return [2 * others * chunk] * workers
    raise ValueError(f"unknown scheme: {scheme}")
