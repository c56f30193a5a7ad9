def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    total_number_of_images = sum(counts)
    mean_gradient = [0.0] * len(gradients[0])
    for worker_gradient, worker_count in zip(gradients, counts):
        if worker_count == 0:
            continue  # this worker has no images
        for index, value in enumerate(worker_gradient):
            mean_gradient[index] += value * worker_count
    return [value / total_number_of_images for value in mean_gradient]


def ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]:
    import copy

    world_size = len(chunks)
    # All workers send at the same time, so read from the old chunks and write into new ones.
    new_chunks = copy.deepcopy(chunks)
    for sender_rank in range(world_size):
        receiver_rank = (sender_rank + 1) % world_size
        chunk_index = (sender_rank - step) % world_size
        sent_chunk = chunks[sender_rank][chunk_index]
        own_chunk = chunks[receiver_rank][chunk_index]
        new_chunks[receiver_rank][chunk_index] = [own + sent for own, sent in zip(own_chunk, sent_chunk)]
    return new_chunks


def ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]:
    chunk_to_send = (rank - step) % size
    # We get what the previous rank sends in the same step.
    previous_rank = (rank - 1) % size
    chunk_to_receive = (previous_rank - step) % size
    is_reduce_scatter = step < size - 1
    return chunk_to_send, chunk_to_receive, is_reduce_scatter


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == "parameter server":
        # Rank 0 sends the result to all others, each of the others sends its gradient once.
        bytes_of_server = (workers - 1) * gradient_bytes
        return [bytes_of_server] + [gradient_bytes] * (workers - 1)
    elif scheme == "ring":
        chunk_bytes = gradient_bytes // workers
        number_of_steps = 2 * (workers - 1)
        return [number_of_steps * chunk_bytes for _ in range(workers)]
    else:
        raise ValueError(f"unknown scheme: {scheme}")
