def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # Only workers with images count.
    used = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    all_images = sum(count for _, count in used)

    # Add the gradients, each one as often as its worker has images.
    length = len(used[0][0])
    total = [0.0] * length
    for gradient, count in used:
        for position, number in enumerate(gradient):
            total[position] += count * number

    # Divide by the number of all images.
    return [number / all_images for number in total]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)

    # Make a copy first. All workers send at the same time, so we must read the old values only.
    result = [[list(chunk) for chunk in worker] for worker in chunks]

    for sender, worker in enumerate(chunks):
        receiver = (sender + 1) % size
        # In each step the number of the sent chunk goes down by one.
        sent = (sender - step) % size

        # The receiver adds what comes to its own chunk.
        incoming = worker[sent]
        own = chunks[receiver][sent]
        result[receiver][sent] = [mine + theirs for mine, theirs in zip(own, incoming)]

    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # A worker passes on what it got before, so its chunk number goes down by one in each step.
    sends = (rank - step) % size

    # It gets what its left neighbour sends in this step.
    left = (rank - 1) % size
    gets = (left - step) % size

    # The first half of the steps adds, the second half replaces.
    adds = step < size - 1
    return sends, gets, adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    others = workers - 1

    if scheme == "parameter server":
        # The server sends the result to each of the others. Each of them sends one gradient.
        server = others * gradient_bytes
        return [server] + [gradient_bytes] * others

    if scheme == "ring":
        # Two halves, with one step for each other worker, and one chunk in each step.
        chunk = gradient_bytes // workers
        steps = 2 * others
        return [steps * chunk] * workers

    raise ValueError(f"unknown scheme: {scheme}")
