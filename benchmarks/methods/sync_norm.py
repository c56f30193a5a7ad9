"""Synchronised batch normalisation on any device.

It uses the statistics of all workers' images, and gradients flow through them. Horovod's own `hvd.SyncBatchNorm` runs
only on GPUs.
"""

import torch
from torch import Tensor, nn

from benchmarks.instruments import horovod_ops


class _Mean(torch.autograd.Function):
    """The mean over the workers.

    The backward pass is also a mean, because each worker's loss depends on all workers' inputs. This is right if the
    workers' gradients are averaged afterwards, and wrong if they are summed.
    """

    @staticmethod
    def forward(ctx, tensor: Tensor, name: str, options: dict) -> Tensor:
        ctx.name, ctx.options = name, options
        return horovod_ops.mean(tensor, f"{name}.forward", **options)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:
        return horovod_ops.mean(gradient.contiguous(), f"{ctx.name}.backward", **ctx.options), None, None


class SynchronisedNorm(nn.BatchNorm2d):
    """nn.BatchNorm2d over the batches of all workers, which must be equally large. It keeps no running statistics.

    `options` are those of hvd.allreduce. Input and output have the shape `(B, C, H, W)`.
    """

    def __init__(self, channels: int, **options):
        super().__init__(channels, track_running_stats=False)
        self.options = options

    def forward(self, x: Tensor) -> Tensor:
        moments = torch.cat([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))])
        mean, square = _Mean.apply(moments, "norm", self.options).chunk(2)
        scale = self.weight * (square - mean.square() + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - mean * scale).view(1, -1, 1, 1)
