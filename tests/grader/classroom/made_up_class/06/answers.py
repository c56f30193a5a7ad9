def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # Weigh each worker's mean by its number of images. Workers without images are left out altogether.
    voters = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    total = sum(count for _, count in voters)
    columns = zip(*(gradient for gradient, _ in voters))
    weights = [count for _, count in voters]
    return [sum(value * weight for value, weight in zip(column, weights)) / total for column in columns]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)

    def after(rank: int, c: int) -> list[float]:
        sender = (rank - 1) % size
        own = chunks[rank][c]
        arrives = c == (sender - step) % size  # what the left neighbour sends in this step
        return [a + b for a, b in zip(own, chunks[sender][c])] if arrives else list(own)

    return [[after(rank, c) for c in range(size)] for rank in range(size)]


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    def sent_by(worker: int) -> int:
        return (worker - step) % size  # one chunk back per step, in both halves

    return sent_by(rank), sent_by(rank - 1), step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    def parameter_server(rank: int) -> int:
        return gradient_bytes * (workers - 1) if rank == 0 else gradient_bytes

    def ring(rank: int) -> int:
        return 2 * (workers - 1) * (gradient_bytes // workers)

    sent = {"parameter server": parameter_server, "ring": ring}[scheme]
    return [sent(rank) for rank in range(workers)]
