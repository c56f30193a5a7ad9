# ======================================================================================================================
# Average gradients over unequal shards
# ======================================================================================================================


def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total = sum(counts)
    mean = [0.0] * len(gradients[0])
    for gradient, count in zip(gradients, counts):
        if count == 0:
            continue  # no images, no say (whatever stands in its gradient, even NaN)
        for i, value in enumerate(gradient):
            mean[i] += count * value
    return [value / total for value in mean]


# ======================================================================================================================
# One step of ring all-reduce
# ======================================================================================================================


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    # a copy, so that everybody sends what it held before the step
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for rank in range(size):
        neighbour = (rank + 1) % size
        c = (rank - step) % size
        after[neighbour][c] = [own + got for own, got in zip(chunks[neighbour][c], chunks[rank][c])]
    return after


# ======================================================================================================================
# A worker's part in a ring all-reduce
# ======================================================================================================================


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # each step the chunk number goes down by one, also from the first half to the second
    sends = (rank - step) % size
    gets = (rank - 1 - step) % size  # what the worker before sends
    adds = step < size - 1
    return sends, gets, adds


# ======================================================================================================================
# What each worker sends in an update
# ======================================================================================================================


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    if scheme == "parameter server":
        # the server sends the result to each of the others, they send one gradient each
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        chunk = gradient_bytes // workers
        return [2 * others * chunk] * workers
    raise ValueError(f"unknown scheme {scheme!r}")
