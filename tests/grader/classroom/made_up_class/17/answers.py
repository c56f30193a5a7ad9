def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    assert len(gradients) == len(counts)
    total = sum(counts)
    assert total > 0
    # A worker without images is left out, whatever its gradient says.
    sharing = [(gradient, count) for gradient, count in zip(gradients, counts) if count > 0]
    length = len(sharing[0][0])
    assert all(len(gradient) == length for gradient, _ in sharing)
    return [sum(count * gradient[i] for gradient, count in sharing) / total for i in range(length)]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    n = len(chunks)
    assert 0 <= step <= n - 2
    assert all(len(worker) == n for worker in chunks)
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for r in range(n):
        c = (r - step) % n  # one chunk further back with each step
        to = (r + 1) % n
        assert len(chunks[r][c]) == len(chunks[to][c])
        # Read from `chunks` and write to `after`: all workers send at the same time.
        after[to][c] = [own + got for own, got in zip(chunks[to][c], chunks[r][c])]
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    assert 0 <= rank < size
    assert 0 <= step <= 2 * size - 3
    sends = (rank - step) % size
    gets = (rank - 1 - step) % size  # what the worker before this one sends
    return sends, gets, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    assert scheme in ("parameter server", "ring")
    assert gradient_bytes % workers == 0
    if scheme == "parameter server":
        sent = [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    else:
        chunk = gradient_bytes // workers
        sent = [2 * (workers - 1) * chunk] * workers
    assert len(sent) == workers
    return sent
