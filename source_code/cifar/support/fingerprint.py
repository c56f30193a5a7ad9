"""A fingerprint is one number for a network's weights.

It is equal on two workers if their weights are equal. If their weights differ, it almost certainly differs, too.
"""

import zlib
from collections.abc import Iterable

from torch import Tensor


def fingerprint(tensors: Iterable[Tensor]) -> int:
    """Return a 32-bit hash of the tensors' bytes. The order of the tensors does not matter.

    Optimizers and state dicts have the same tensors in different orders.
    """
    parts = sorted(zlib.crc32(_in_one_order(tensor.detach().cpu()).numpy().data) for tensor in tensors)
    return zlib.crc32(b"".join(part.to_bytes(4, "big") for part in parts))


def _in_one_order(tensor: Tensor) -> Tensor:
    """Return the elements in an order that does not depend on the memory format.

    A tensor that has its channels last in memory is not copied.
    """
    return tensor.permute(0, 2, 3, 1).contiguous() if tensor.dim() == 4 else tensor.contiguous()
