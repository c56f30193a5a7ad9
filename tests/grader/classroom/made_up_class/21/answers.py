def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # g = (sum_r n_r g_r) / (sum_r n_r), the sums over those r with n_r > 0
    pairs = [(n_r, g_r) for n_r, g_r in zip(counts, gradients) if n_r > 0]
    n = sum(n_r for n_r, _ in pairs)
    d = len(pairs[0][1])
    return [sum(n_r * g_r[i] for n_r, g_r in pairs) / n for i in range(d)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    # In step k worker r sends chunk r - k (mod N), by induction: it got (r - 1) - (k - 1) = r - k in step k - 1.
    # So worker r gets c = r - 1 - k (mod N) from worker r - 1:   x'[r][c] = x[r][c] + x[r-1][c], all else unchanged.
    x, k = chunks, step
    N = len(x)
    y = [[list(x_rc) for x_rc in x_r] for x_r in x]
    for r in range(N):
        c = (r - 1 - k) % N
        y[r][c] = [a + b for a, b in zip(x[r][c], x[(r - 1) % N][c])]
    return y


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # sends r - k, gets r - 1 - k (mod N) for every k in 0 .. 2N - 3; adds iff k <= N - 2
    r, k, N = rank, step, size
    return (r - k) % N, (r - 1 - k) % N, k <= N - 2


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    # parameter server:  t_0 = (n - 1) G,  t_r = G for r > 0
    # ring:              t_r = 2 (n - 1) G / n for all r
    n, G = workers, gradient_bytes
    if scheme == "parameter server":
        return [(n - 1) * G if r == 0 else G for r in range(n)]
    if scheme == "ring":
        return [2 * (n - 1) * (G // n) for _ in range(n)]
    raise ValueError(f"no such scheme: {scheme!r}")
