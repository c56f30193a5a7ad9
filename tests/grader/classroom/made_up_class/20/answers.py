"""The four exercises. Every function stands by itself."""


def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    """Weight each worker's mean gradient by the number of its images."""
    contributions = [(gradient, count) for gradient, count in zip(gradients, counts, strict=True) if count > 0]
    total = sum(count for _, count in contributions)
    length = len(contributions[0][0])
    return [sum(gradient[i] * count for gradient, count in contributions) / total for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    """Perform one step of reduce-scatter on a copy, so that all workers send what they held before the step."""
    size = len(chunks)
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        index = (sender - step) % size
        after[receiver][index] = [
            own + incoming for own, incoming in zip(chunks[receiver][index], chunks[sender][index], strict=True)
        ]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    """Return (chunk sent, chunk received, whether the received chunk is added)."""
    sent = (rank - step) % size
    received = (sent - 1) % size  # what the left neighbour, rank - 1, sends in this step
    is_reduce_scatter = step < size - 1
    return sent, received, is_reduce_scatter


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    """Return the bytes that each worker sends in one update, by rank."""
    others = workers - 1
    if scheme == "parameter server":
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        chunk_bytes = gradient_bytes // workers
        return [2 * others * chunk_bytes] * workers
    raise ValueError(f"unknown scheme: {scheme!r}")
