def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # The mean over all images is: (sum over workers of count * mean gradient) / (number of all images).
    # A mean gradient times its count is the sum of the gradients of this worker's images.
    total_images = 0
    for count in counts:
        total_images = total_images + count

    # Start with zeros, one for each number of the gradient. All workers have equally many numbers.
    length = len(gradients[0])
    sums = [0.0] * length

    for worker in range(len(gradients)):
        # A worker without images has no say. I skip it, because its gradient may be anything, even NaN, and 0 * NaN is
        # not 0.
        if counts[worker] == 0:
            continue
        for i in range(length):
            sums[i] = sums[i] + counts[worker] * gradients[worker][i]

    # Last step: divide each sum by the number of images.
    result = []
    for i in range(length):
        result.append(sums[i] / total_images)
    return result


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)

    # First make a copy of everything. All workers send at the same time, so what is sent must be read from the old
    # state (chunks), and what is received is written into the new state.
    new_chunks = []
    for worker in range(size):
        new_worker = []
        for c in range(size):
            new_worker.append(list(chunks[worker][c]))
        new_chunks.append(new_worker)

    for sender in range(size):
        receiver = (sender + 1) % size
        # In step 0 worker r sends chunk r. In step 1 it sends what it got from worker r - 1 in step 0, which is chunk
        # r - 1. In step 2 it is chunk r - 2, and so on.
        c = (sender - step) % size
        for i in range(len(chunks[sender][c])):
            new_chunks[receiver][c][i] = chunks[receiver][c][i] + chunks[sender][c][i]

    return new_chunks


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # With each step the chunk that I send has a number that is one lower, because I pass on what my left neighbour sent
    # in the step before. This goes on in the second half: in step N - 1 I send the chunk that I got in step N - 2, and
    # this one is complete. In Python % never gives a negative number here.
    send = (rank - step) % size

    # What I get is what my left neighbour sends in this step.
    left = (rank - 1) % size
    get = (left - step) % size

    # Steps 0 to N - 2 are the first half, where one adds.
    add = step < size - 1

    return send, get, add


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    sent = []

    if scheme == "parameter server":
        for rank in range(workers):
            if rank == 0:
                # The server sends the result to each of the others, one by one. It sends its own gradient to nobody.
                sent.append((workers - 1) * gradient_bytes)
            else:
                # The others send one whole gradient to the server.
                sent.append(gradient_bytes)

    elif scheme == "ring":
        # There are workers - 1 steps until the sums are complete, and as many again until all have them. In each step
        # a worker sends one chunk. With one worker there are 0 steps.
        chunk_bytes = gradient_bytes // workers
        steps = 2 * (workers - 1)
        for rank in range(workers):
            sent.append(steps * chunk_bytes)

    else:
        raise ValueError(f"unknown scheme: {scheme}")

    return sent
