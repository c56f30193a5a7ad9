def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total = sum(counts)
    result = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        if count == 0:  # this worker has no say, whatever its gradient is
            continue
        for i, value in enumerate(gradient):
            result[i] += value * count
    return [value / total for value in result]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    # copy first, because all workers send at the same time
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        c = (sender - step) % size
        after[receiver][c] = [own + new for own, new in zip(chunks[receiver][c], chunks[sender][c])]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    send = (rank - step) % size
    get = (rank - 1 - step) % size  # what the left neighbour sends in this step
    adds = step < size - 1
    return send, get, adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "parameter server":
        server = (workers - 1) * gradient_bytes
        return [server] + [gradient_bytes] * (workers - 1)
    if scheme == "ring":
        chunk = gradient_bytes // workers
        steps = 2 * (workers - 1)
        return [steps * chunk] * workers
    raise ValueError(f"unknown scheme: {scheme}")
