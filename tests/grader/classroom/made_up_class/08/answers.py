def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # 1. Only workers with images count
    active = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    total = sum(count for _, count in active)

    # 2. Weighted mean for each number of the gradient
    result = []
    for i in range(len(active[0][0])):
        weighted = sum(gradient[i] * count for gradient, count in active)
        result.append(weighted / total)
    return result


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)

    # 1. Copy, because all workers send at the same time what they held before
    result = [[list(chunk) for chunk in worker] for worker in chunks]

    # 2. Worker r sends chunk r - step, and its neighbour adds it
    for r in range(n):
        c = (r - step) % n
        neighbour = (r + 1) % n
        result[neighbour][c] = [own + sent for own, sent in zip(chunks[neighbour][c], chunks[r][c])]
    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # 1. Each step goes one chunk back, in both halves
    send = (rank - step) % size

    # 2. What comes is what the left neighbour sends
    receive = (rank - 1 - step) % size

    # 3. Adding happens only in the first half
    add = step < size - 1
    return send, receive, add


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    # 1. Parameter server: the others send one gradient, worker 0 sends the result to each of them
    if scheme == "parameter server":
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)

    # 2. Ring: 2 * (workers - 1) steps, one chunk in each
    if scheme == "ring":
        chunk = gradient_bytes // workers
        return [2 * (workers - 1) * chunk] * workers

    # 3. Anything else is a mistake
    raise ValueError(f"unknown scheme: {scheme}")
