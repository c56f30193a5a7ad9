def average_gradients(grads: list[list[float]], sizes: list[int]) -> list[float]:
    # Weigh each worker's mean by its number of images. Workers without images are left out altogether.
    active = [(grad, n) for grad, n in zip(grads, sizes) if n > 0]
    n_all = sum(n for _, n in active)
    coords = zip(*(grad for grad, _ in active))
    shares = [n for _, n in active]
    return [sum(x * w for x, w in zip(coord, shares)) / n_all for coord in coords]


def ring_step(pieces: list[list[list[float]]], turn: int) -> list[list[list[float]]]:
    n_procs = len(pieces)

    def updated(me: int, k: int) -> list[float]:
        left = (me - 1) % n_procs
        kept = pieces[me][k]
        incoming = k == (left - turn) % n_procs  # what the left neighbour sends in this step
        return [u + v for u, v in zip(kept, pieces[left][k])] if incoming else list(kept)

    return [[updated(me, k) for k in range(n_procs)] for me in range(n_procs)]


def ring_plan(me: int, turn: int, n_procs: int) -> tuple[int, int, bool]:
    def out_of(who: int) -> int:
        return (who - turn) % n_procs  # one chunk back per step, in both halves

    return out_of(me), out_of(me - 1), turn < n_procs - 1


def traffic(method: str, n_nodes: int, n_bytes: int) -> list[int]:
    def central(me: int) -> int:
        return n_bytes * (n_nodes - 1) if me == 0 else n_bytes

    def circle(me: int) -> int:
        return 2 * (n_nodes - 1) * (n_bytes // n_nodes)

    amount = {"parameter server": central, "ring": circle}[method]
    return [amount(me) for me in range(n_nodes)]
