"""Synchronised batch normalisation on any device: statistics of all workers' images, and gradients through them.

Horovod's own `hvd.SyncBatchNorm` runs on GPUs only.
"""

import torch
from torch import Tensor, nn

from benchmarks.instruments import horovod_ops


class _Mean(torch.autograd.Function):
    """The mean over the workers. Backward it is a mean too: each worker's loss depends on all workers' inputs.

    That suits gradients which are averaged over the workers afterwards, not summed.
    """

    @staticmethod
    def forward(ctx, tensor: Tensor, name: str, options: dict) -> Tensor:
        ctx.name, ctx.options = name, options
        return horovod_ops.mean(tensor, f"{name}.forward", **options)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        return horovod_ops.mean(gradient.contiguous(), f"{ctx.name}.backward", **ctx.options), None, None


class SynchronisedNorm(nn.BatchNorm2d):
    """nn.BatchNorm2d over the batches of all workers, which must be equally large; keeps no running statistics.

    `options` as for hvd.allreduce. Input and output `(B, C, H, W)`.
    """

    def __init__(self, channels: int, **options):
        super().__init__(channels, track_running_stats=False)
        self.options = options

    def forward(self, x: Tensor) -> Tensor:
        moments = torch.cat([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))])
        mean, square = _Mean.apply(moments, "norm", self.options).chunk(2)
        scale = self.weight * (square - mean.square() + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - mean * scale).view(1, -1, 1, 1)
