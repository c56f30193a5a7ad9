def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total = sum(counts)
    mean = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        if count > 0:
            for i in range(len(mean)):
                mean[i] += gradient[i] * count / total
    return mean


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    result = [[list(chunk) for chunk in worker] for worker in chunks]
    for r in range(n):
        c = (r - step) % n
        neighbour = (r + 1) % n
        result[neighbour][c] = [a + b for a, b in zip(chunks[neighbour][c], chunks[r][c])]
    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    return (rank - step) % size, (rank - 1 - step) % size, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "parameter server":
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    return [2 * (workers - 1) * (gradient_bytes // workers)] * workers
