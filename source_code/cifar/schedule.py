"""These functions give the factor of the learning rate at an update, for gradual warmup and for linear decay."""


def warmup_factor(update: int, warmup_updates: int, size: int) -> float:
    """Return the factor of the learning rate at an update for gradual warmup (Goyal et al. 2017, section 2.2).

    It rises linearly from 1 to `size` over `warmup_updates` updates, and then stays at `size`. Updates are counted from
    0. The paper is arXiv:1706.02677. Raises ValueError if `warmup_updates` < 0 or `size` < 1.
    """
    if warmup_updates < 0 or size < 1:
        raise ValueError(f"warmup_updates must be 0 or more and size 1 or more, not {warmup_updates} and {size}")
    if update >= warmup_updates:
        return float(size)
    return 1 + (size - 1) * update / warmup_updates


def decay_factor(update: int, first: int, last: int) -> float:
    """Return the factor of the learning rate at an update for linear decay.

    It is 1 until update `first`, and 0 from update `last` on. Raises ValueError unless `first` < `last`.
    """
    if not first < last:
        raise ValueError(f"decay must end after it begins, not at update {last} when it begins at {first}")
    return min(1.0, max(0.0, (last - update) / (last - first)))
