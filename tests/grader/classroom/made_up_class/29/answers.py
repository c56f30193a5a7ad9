def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "ring":
        steps = 2 * (workers - 1)
        chunk = gradient_bytes // workers
        return [steps * chunk] * workers
    if scheme == "parameter server":
        server = (workers - 1) * gradient_bytes
        return [server] + [gradient_bytes] * (workers - 1)
    raise ValueError(f"unknown scheme: {scheme}")


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    adds = step < size - 1
    get = (rank - 1 - step) % size  # what the left neighbour sends in this step
    send = (rank - step) % size
    return send, get, adds


def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    result = [0.0] * len(gradients[0])
    total = sum(counts)
    for gradient, count in zip(gradients, counts):
        if count == 0:  # this worker has no say, whatever its gradient is
            continue
        for i, value in enumerate(gradient):
            result[i] += value * count
    return [value / total for value in result]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    # copy first, because all workers send at the same time
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    size = len(chunks)
    for sender in range(size):
        c = (sender - step) % size
        receiver = (sender + 1) % size
        after[receiver][c] = [own + new for own, new in zip(chunks[receiver][c], chunks[sender][c])]
    return after
