def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # Weighted average: each gradient counts as often as its worker had samples.
    total_images = 0
    for count in counts:
        total_images = total_images + count

    # Accumulator, one entry per gradient component.
    length = len(gradients[0])
    sums = [0.0] * length

    for worker in range(len(gradients)):
        # Empty batch: leave this worker out entirely, since its values might not be finite and a weight of zero would
        # still give NaN.
        if counts[worker] == 0:
            continue
        for i in range(length):
            sums[i] = sums[i] + counts[worker] * gradients[worker][i]

    # Normalise by the overall sample count.
    result = []
    for i in range(length):
        result.append(sums[i] / total_images)
    return result


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)

    # Deep copy, because the transfers of one step are simultaneous: read the input, modify only the copy.
    new_chunks = []
    for worker in range(size):
        new_worker = []
        for c in range(size):
            new_worker.append(list(chunks[worker][c]))
        new_chunks.append(new_worker)

    for sender in range(size):
        receiver = (sender + 1) % size
        # The chunk index moves back by one per step: a worker forwards what it has just accumulated. Its own chunk is
        # the first to go out.
        c = (sender - step) % size
        for i in range(len(chunks[sender][c])):
            new_chunks[receiver][c][i] = chunks[receiver][c][i] + chunks[sender][c][i]

    return new_chunks


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # Outgoing chunk: own index at the beginning, afterwards always the predecessor of the previous one, through both
    # phases (scatter-reduce, then all-gather). Python's modulo wraps negative values around to the top.
    send = (rank - step) % size

    # Incoming chunk: apply the same formula to the predecessor in the ring.
    left = (rank - 1) % size
    get = (left - step) % size

    # Accumulate during scatter-reduce, overwrite during all-gather.
    add = step < size - 1

    return send, get, add


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    sent = []

    if scheme == "parameter server":
        for rank in range(workers):
            if rank == 0:
                # Rank 0 plays the server: one full-size answer per client, nothing to itself.
                sent.append((workers - 1) * gradient_bytes)
            else:
                # A client uploads its gradient just once.
                sent.append(gradient_bytes)

    elif scheme == "ring":
        # Both phases take workers - 1 rounds, with a single chunk going out per round. It comes to nothing if there
        # is only one worker.
        chunk_bytes = gradient_bytes // workers
        steps = 2 * (workers - 1)
        for rank in range(workers):
            sent.append(steps * chunk_bytes)

    else:
        raise ValueError(f"unknown scheme: {scheme}")

    return sent
