def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    # All images of all workers together. By this the weighted sum is divided at the end.
    total = sum(counts)

    # Begin with zeros, one for each number of a gradient. All gradients are equally long, so I look at the first one.
    mean = [0.0] * len(gradients[0])

    # Go through the workers, each with its gradient and its number of images.
    for gradient, count in zip(gradients, counts):
        # A worker without images has no say. I skip it, and do not multiply by 0, because the mean over no images may
        # be nan, and 0 times nan is nan again.
        if count == 0:
            continue

        # A worker's gradient is already a mean over its images. Times the count it is the sum over its images, and sums
        # can be added.
        for i, value in enumerate(gradient):
            mean[i] += value * count

    # Divide the sum over all images by the number of all images. This is the mean that was asked for.
    return [value / total for value in mean]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    # There are as many workers as there are lists on the outside.
    size = len(chunks)

    # Copy everything down to the innermost lists. All workers send at the same time, so what is sent must be read from
    # the old state, and the sums are written into the new one. The argument stays as it was, too.
    after = [[list(chunk) for chunk in worker] for worker in chunks]

    # Let each worker send once.
    for rank in range(size):
        # In step 0 it sends the chunk of its own number. In each later step it sends what came from the left, and that
        # is always one number lower. The modulo in Python is never negative, so it closes the ring.
        number = (rank - step) % size

        # The neighbour on the right gets it, and the last worker sends to worker 0.
        neighbour = (rank + 1) % size

        # The neighbour adds number by number to its own chunk with the same number. The sender keeps what it has.
        after[neighbour][number] = [
            own + came for own, came in zip(chunks[neighbour][number], chunks[rank][number])
        ]

    # This is what the workers hold after the step.
    return after


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    # In step 0 the worker sends the chunk of its own number, and with each step the number goes down by one. This is
    # the same in the second half: it begins with passing on the chunk that came last in the first half, so the counting
    # just goes on.
    sends = (rank - step) % size

    # What the worker gets is what its left neighbour sends, and the left neighbour has a rank that is lower by one.
    gets = (rank - 1 - step) % size

    # The first half has the steps 0 to size - 2. Only there the worker adds, afterwards it replaces.
    adds = step < size - 1

    # The three things in the order of the task.
    return sends, gets, adds


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    # The parameter server first.
    if scheme == "parameter server":
        # Worker 0 sends the whole result to each of the others, one by one. Its own gradient stays where it is. With
        # one worker there are no others, and this is 0.
        server = (workers - 1) * gradient_bytes

        # Each of the others sends its whole gradient once, to the server. With one worker the list of others is empty.
        return [server] + [gradient_bytes] * (workers - 1)

    # Now the ring.
    if scheme == "ring":
        # The gradient is cut into as many chunks as there are workers. It is a multiple, so nothing is left over, and
        # with // it stays a whole number.
        chunk = gradient_bytes // workers

        # There are workers - 1 steps for the sums, and as many again to spread them. With one worker there are none.
        steps = 2 * (workers - 1)

        # Each worker sends one chunk in each step, so all of them send equally much.
        return [steps * chunk] * workers

    # There are no other schemes in the task, so a wrong word should be noticed.
    raise ValueError(f"unknown scheme {scheme!r}")
