def average_gradients(gradients, counts):
    # allreduce(sum) of the weighted gradients, then divide by the total number of images
    total = sum(counts)
    avg = [0.0] * len(gradients[0])
    for grad, count in zip(gradients, counts):
        if count == 0:
            continue  # this rank has no say, whatever is in its buffer
        for i, g in enumerate(grad):
            avg[i] += count * g
    return [a / total for a in avg]


def ring_step(chunks, step):
    size = len(chunks)
    # everybody sends at the same time, so write into a copy and read from the original
    out = [[list(chunk) for chunk in worker] for worker in chunks]
    for rank in range(size):
        dst = (rank + 1) % size
        c = (rank - step) % size
        out[dst][c] = [mine + got for mine, got in zip(chunks[dst][c], chunks[rank][c])]
    return out


def ring_plan(rank, step, size):
    send = (rank - step) % size
    recv = (rank - step - 1) % size
    # reduce-scatter first, allgather afterwards
    reduce_scatter = step < size - 1
    return send, recv, reduce_scatter


def traffic(scheme, workers, gradient_bytes):
    if scheme == "parameter server":
        # rank 0 is the server: it sends to all others, they send to it
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    if scheme == "ring":
        chunk = gradient_bytes // workers
        return [2 * (workers - 1) * chunk] * workers
    raise ValueError("unknown scheme: %s" % scheme)
