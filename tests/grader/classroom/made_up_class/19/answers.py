def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    import numpy as np

    used = [r for r, count in enumerate(counts) if count > 0]  # without images a mean may be nan
    return np.average([gradients[r] for r in used], axis=0, weights=[counts[r] for r in used]).tolist()


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    from copy import deepcopy
    from operator import add

    size, after = len(chunks), deepcopy(chunks)
    for r in range(size):
        c, to = (r - step) % size, (r + 1) % size
        after[to][c] = list(map(add, chunks[to][c], chunks[r][c]))
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    return (rank - step) % size, (rank - 1 - step) % size, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "ring":
        return [2 * (workers - 1) * gradient_bytes // workers] * workers
    return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
