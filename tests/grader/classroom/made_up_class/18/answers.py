def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    """Return the mean gradient of all images: each worker's mean weighs as much as it has images."""

    def _weighted_sum(position):
        """Return the sum over the workers with images of count times gradient, at one position."""
        return sum(count * gradient[position] for gradient, count in zip(gradients, counts) if count > 0)

    all_images = sum(counts)
    return [_weighted_sum(position) / all_images for position in range(len(gradients[0]))]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    """Return what the workers hold after one step of reduce-scatter. The input is left as it is."""

    def _add(mine, incoming):
        """Return two chunks added number by number."""
        return [a + b for a, b in zip(mine, incoming)]

    size = len(chunks)
    after = [[list(chunk) for chunk in vector] for vector in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        sent = (sender - step) % size  # in step 0 its own number, and then one less in each step
        # Read from `chunks`, because all workers send at the same time.
        after[receiver][sent] = _add(chunks[receiver][sent], chunks[sender][sent])
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    """Return the chunk that a worker sends, the chunk that it gets, and whether it adds."""

    def _sent_by(worker):
        """Return the chunk that this worker sends. It moves down by one per step, in both halves."""
        return (worker - step) % size

    return _sent_by(rank), _sent_by(rank - 1), step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    """Return how many bytes each worker sends in one update, by rank."""

    def _parameter_server():
        """The server sends the result to each other worker, and each of these sends one gradient."""
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)

    def _ring():
        """Each worker sends one chunk in each of 2 (workers - 1) steps."""
        chunk_bytes = gradient_bytes // workers
        return [2 * (workers - 1) * chunk_bytes] * workers

    if scheme == "parameter server":
        return _parameter_server()
    if scheme == "ring":
        return _ring()
    raise ValueError(f"unknown scheme: {scheme}")
