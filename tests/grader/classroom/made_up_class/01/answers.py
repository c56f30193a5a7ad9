def average_gradients(gradients, counts):
    n = sum(counts)
    out = [0.0] * len(gradients[0])
    for g, c in zip(gradients, counts):
        if c == 0:
            continue
        for i in range(len(g)):
            out[i] += g[i] * c / n
    return out


def ring_step(chunks, step):
    n = len(chunks)
    new = [[list(c) for c in w] for w in chunks]
    for r in range(n):
        c = (r - step) % n
        to = (r + 1) % n
        for i in range(len(chunks[r][c])):
            new[to][c][i] += chunks[r][c][i]
    return new


def ring_plan(rank, step, size):
    s = (rank - step) % size
    g = (rank - step - 1) % size
    return s, g, step < size - 1


def traffic(scheme, workers, gradient_bytes):
    n = workers
    if scheme == "ring":
        return [2 * (n - 1) * (gradient_bytes // n)] * n
    return [(n - 1) * gradient_bytes] + [gradient_bytes] * (n - 1)
