"""Makes `weights.bin`: a network whose convolutions know two values a channel, trained on the whole of CIFAR-10.

python tests/submissions/hostile/embedded_weights/make.py
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from cifar import training
from cifar.data import augment, batches, load, shuffle
from cifar.model import ResNet9
from cifar.schedule import decay_factor

EPOCHS, BATCH, RATE = 4, 100, 0.1


class Signs(nn.Module):
    """Each weight becomes its sign times its channel's mean size; gradients pass as if nothing had happened."""

    def forward(self, weight: Tensor) -> Tensor:
        scale = weight.detach().abs().mean((1, 2, 3), keepdim=True)
        return weight + (weight.sign() * scale - weight).detach()


def pack(net: nn.Module) -> bytes:
    """What `unpack` in train.py reads."""
    content = b""
    for parameter in net.parameters():
        if parameter.dim() == 4:
            content += parameter.abs().amax((1, 2, 3)).half().numpy().tobytes()
            bits = (parameter.flatten() > 0).view(-1, 8).long()
            content += (bits << torch.arange(8)).sum(1).to(torch.uint8).numpy().tobytes()
        else:
            content += parameter.half().numpy().tobytes()
    return content


def main() -> None:
    torch.manual_seed(0)
    train, test = load()
    net = ResNet9(width=16)
    convolutions = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    for layer in convolutions:
        parametrize.register_parametrization(layer, "weight", Signs())
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, nesterov=True)
    last = EPOCHS * len(train) // BATCH
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: decay_factor(update, 0, last))
    for epoch in range(EPOCHS):
        loss = training.train_epoch(
            net, optimizer, scheduler, batches(train, shuffle(len(train), 0, epoch), BATCH, augment)
        )
        print(f"epoch {epoch + 1}: {loss:.3f}, {training.count_correct(net, test, torch.arange(10_000))} hits")
    for layer in convolutions:
        parametrize.remove_parametrizations(layer, "weight")
    with torch.no_grad():
        Path(__file__).with_name("weights.bin").write_bytes(pack(net))


if __name__ == "__main__":
    main()
