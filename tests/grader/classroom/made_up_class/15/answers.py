def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    live = [(g, c) for g, c in zip(gradients, counts) if c]
    return [sum(x * c for x, (_, c) in zip(col, live)) / sum(counts) for col in zip(*(g for g, _ in live))]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    return [
        [[a + b for a, b in zip(x, chunks[r - 1][c])] if c == (r - 1 - step) % n else [*x] for c, x in enumerate(row)]
        for r, row in enumerate(chunks)
    ]


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    return (out := (rank - step) % size), (out - 1) % size, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    return [2 * others * gradient_bytes // workers] * workers if scheme == "ring" else [others * gradient_bytes, *[gradient_bytes] * others]
