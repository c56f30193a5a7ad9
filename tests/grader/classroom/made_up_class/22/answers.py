def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    import torch

    # running sums: gradients weighted with their images, and the images
    total = torch.zeros(len(gradients[0]), dtype=torch.float64)
    images = torch.zeros((), dtype=torch.float64)
    for gradient, count in zip(gradients, counts):
        if count == 0:  # no images, no say
            continue
        total += count * torch.tensor(gradient, dtype=torch.float64)
        images += count
    return (total / images).tolist()


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    size = len(chunks)
    # all send at the same time, so read from the old chunks and write to a copy
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for sender in range(size):
        receiver = (sender + 1) % size
        c = (sender - step) % size
        for i, number in enumerate(chunks[sender][c]):
            after[receiver][c][i] += number
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # each step goes one chunk back, in both halves; what I get is what my left neighbour sends
    sends = (rank - step) % size
    gets = (rank - 1 - step) % size
    return sends, gets, step < size - 1


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "parameter server":
        # the server sends the result to all others, each other one sends one gradient
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    # ring: two halves of workers - 1 steps, one chunk in each step
    chunk = gradient_bytes // workers
    return [2 * (workers - 1) * chunk] * workers
