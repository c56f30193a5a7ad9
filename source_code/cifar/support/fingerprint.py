"""One number for a network's weights: equal on two workers if, and as good as certainly only if, the weights are."""

import zlib
from collections.abc import Iterable

from torch import Tensor


def fingerprint(tensors: Iterable[Tensor]) -> int:
    """A 32-bit hash of the tensors' bytes, whatever their order: optimizers and state dicts order them differently."""
    parts = sorted(zlib.crc32(_in_one_order(tensor.detach().cpu()).numpy().data) for tensor in tensors)
    return zlib.crc32(b"".join(part.to_bytes(4, "big") for part in parts))


def _in_one_order(tensor: Tensor) -> Tensor:
    """The elements one after the other, however they lie in memory; no copy where channels lie last, as ours do."""
    return tensor.permute(0, 2, 3, 1).contiguous() if tensor.dim() == 4 else tensor.contiguous()
