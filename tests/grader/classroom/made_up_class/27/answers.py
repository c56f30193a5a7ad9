def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    if len(gradients) != len(counts):
        raise ValueError(f"{len(gradients)} gradients, but {len(counts)} counts")
    if any(count < 0 for count in counts):
        raise ValueError("counts must not be negative")
    total = sum(counts)
    if total == 0:
        raise ValueError("at least one worker must have an image")

    first = next(r for r, count in enumerate(counts) if count > 0)
    result = [0.0] * len(gradients[first])
    for gradient, count in zip(gradients, counts):
        if count == 0:
            continue  # This worker has no say, whatever its numbers are.
        if len(gradient) != len(result):
            raise ValueError("gradients must be equally long on all workers")
        for i, value in enumerate(gradient):
            result[i] += count * value
    return [value / total for value in result]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    if size < 2:
        raise ValueError("a ring needs 2 workers or more")
    if any(len(worker) != size for worker in chunks):
        raise ValueError(f"each of {size} workers must have {size} chunks")
    if not 0 <= step <= size - 2:
        raise ValueError(f"step {step} is not in 0 .. {size - 2}")

    # Everybody sends at the same time: read from the old chunks, write to a copy.
    result = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        c = (sender - step) % size
        if len(chunks[sender][c]) != len(chunks[receiver][c]):
            raise ValueError(f"chunk {c} has different lengths on workers {sender} and {receiver}")
        for i, value in enumerate(chunks[sender][c]):
            result[receiver][c][i] += value
    return result


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    if size < 2:
        raise ValueError("a ring needs 2 workers or more")
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is not in 0 .. {size - 1}")
    if not 0 <= step <= 2 * size - 3:
        raise ValueError(f"step {step} is not in 0 .. {2 * size - 3}")

    # What a worker gets in one step it sends in the next, in both halves.
    sends = (rank - step) % size
    # The left neighbour follows the same rule.
    gets = (rank - 1 - step) % size
    adds = step < size - 1
    return sends, gets, adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    SERVER = "parameter server"
    RING = "ring"

    if scheme not in (SERVER, RING):
        raise ValueError(f"scheme must be {SERVER!r} or {RING!r}, not {scheme!r}")
    if workers < 1:
        raise ValueError("there must be 1 worker or more")
    if gradient_bytes < 0 or gradient_bytes % workers != 0:
        raise ValueError("gradient_bytes must be a multiple of the number of workers")

    if scheme == SERVER:
        sent = []
        for rank in range(workers):
            if rank == 0:
                sent.append((workers - 1) * gradient_bytes)  # the result, to each of the others
            else:
                sent.append(gradient_bytes)
        return sent

    chunk = gradient_bytes // workers
    steps = 2 * (workers - 1)
    return [steps * chunk] * workers
