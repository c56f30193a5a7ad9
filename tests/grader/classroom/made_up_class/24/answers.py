def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # a worker without images is left out completely, whatever stands in its gradient
    active = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    images = sum(count for _, count in active)
    length = len(active[0][0])
    return [sum(gradient[i] * count for gradient, count in active) / images for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    # copy first: all workers send what they held before the step
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(n):
        receiver = (sender + 1) % n
        c = (sender - step) % n
        after[receiver][c] = [own + new for own, new in zip(chunks[receiver][c], chunks[sender][c])]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # the chunk numbers go down by one with each step, in both halves
    sends = (rank - step) % size
    gets = (rank - 1 - step) % size  # what the left neighbour sends
    adds = step <= size - 2
    return sends, gets, adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1
    if scheme == "parameter server":
        # the server sends one result to each of the others, they send one gradient each
        return [others * gradient_bytes] + [gradient_bytes] * others
    if scheme == "ring":
        chunk = gradient_bytes // workers
        steps = 2 * others
        return [steps * chunk] * workers
    raise ValueError(f"unknown scheme: {scheme}")
