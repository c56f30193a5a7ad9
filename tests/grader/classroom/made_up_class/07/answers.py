def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # Each mean counts as often as it has images. Workers without images are skipped (their mean may be anything).
    total = sum(counts)
    average = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        if count == 0:
            continue
        for i, value in enumerate(gradient):
            average[i] += count * value
    return [value / total for value in average]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    # copy first, because all workers send what they held before the step
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for rank in range(n):
        neighbour = (rank + 1) % n
        c = (rank - step) % n
        for i, value in enumerate(chunks[rank][c]):
            after[neighbour][c][i] += value
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # With every step the chunk to send moves back by one, also in the second half.
    send = (rank - step) % size
    # What comes is what the worker before me sends in this step.
    get = (rank - 1 - step) % size
    add = step < size - 1
    return send, get, add


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "parameter server":
        server = (workers - 1) * gradient_bytes
        return [server] + [gradient_bytes] * (workers - 1)
    if scheme == "ring":
        chunk = gradient_bytes // workers
        steps = 2 * (workers - 1)
        return [steps * chunk] * workers
    raise ValueError(f"unknown scheme {scheme!r}")
