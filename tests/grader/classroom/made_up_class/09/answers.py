def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total = sum(counts)
    length = len(gradients[0])
    mean = [0.0] * length
    r = 0
    while r < len(gradients):
        if counts[r] > 0:  # a worker without images has no say, whatever stands in its list
            i = 0
            while i < length:
                mean[i] += gradients[r][i] * counts[r]
                i += 1
        r += 1
    i = 0
    while i < length:
        mean[i] = mean[i] / total
        i += 1
    return mean


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    # a copy for the result, so that everybody sends what was there before the step
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    r = 0
    while r < n:
        c = (r - step) % n
        to = (r + 1) % n
        i = 0
        while i < len(chunks[r][c]):
            after[to][c][i] = chunks[to][c][i] + chunks[r][c][i]
            i += 1
        r += 1
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # The chunk number goes down by one each step, in the second half too:
    # in step size - 1 a worker sends chunk rank - (size - 1), which is the one that it has just completed.
    send = (rank - step) % size
    get = (rank - 1 - step) % size
    return send, get, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    sent = [0] * workers
    r = 0
    while r < workers:
        if scheme == "ring":
            sent[r] = 2 * (workers - 1) * (gradient_bytes // workers)
        elif r == 0:
            sent[r] = (workers - 1) * gradient_bytes
        else:
            sent[r] = gradient_bytes
        r += 1
    return sent
