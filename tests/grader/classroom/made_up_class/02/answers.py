def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    """Return the mean gradient of all images, weighting each worker's mean by its number of images."""
    total_images: int = sum(counts)
    mean: list[float] = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        if count == 0:
            continue  # this worker has no say
        for i, value in enumerate(gradient):
            mean[i] += value * count
    return [value / total_images for value in mean]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    """Return what the workers hold after one step of reduce-scatter. The argument is left as it is."""
    size: int = len(chunks)
    result: list[list[list[float]]] = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver: int = (sender + 1) % size
        index: int = (sender - step) % size  # each step, the chunk that a worker sends is one lower
        sent: list[float] = chunks[sender][index]
        own: list[float] = chunks[receiver][index]
        result[receiver][index] = [a + b for a, b in zip(own, sent)]
    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    """Return the chunk that `rank` sends in this step, the chunk that it gets, and whether it adds."""

    def sent_by(worker: int) -> int:
        """Return the number of the chunk that a worker sends in this step (both halves count on alike)."""
        return (worker - step) % size

    adds: bool = step < size - 1
    return sent_by(rank), sent_by(rank - 1), adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    """Return the bytes that each worker sends in one update, by rank."""
    if scheme == "parameter server":
        server: int = (workers - 1) * gradient_bytes
        return [server] + [gradient_bytes] * (workers - 1)
    if scheme == "ring":
        chunk_bytes: int = gradient_bytes // workers
        steps: int = 2 * (workers - 1)
        return [steps * chunk_bytes] * workers
    raise ValueError(f"unknown scheme: {scheme!r}")
