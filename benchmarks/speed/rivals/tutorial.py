"""A plain training loop in the style of PyTorch's CIFAR-10 tutorial: pictures one by one, a DataLoader, float32.

    python -m benchmarks.speed.rivals.tutorial NETWORK BATCH UPDATES

The command prints its images/s. The loop is its own program, because a DataLoader forks processes, which a forked
process must not do. torchvision has no build for every machine of the course. Its four transforms are therefore written
here with Pillow, as torchvision does them: pad and crop, mirror, convert to a tensor, normalise.
"""

import random
import sys
import time

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from benchmarks.speed.loop import IMAGES, RATE, WARM_UPDATES, build
from cifar.data import MEAN, STD, load

PADDING = 4  # pixels on each side
LOADERS = 2  # processes that load batches: the tutorial's num_workers
AHEAD = 2 * LOADERS  # batches that the processes load ahead by default


class Pictures(Dataset):
    """The first `count` training images of CIFAR-10 as PIL images, which are augmented when they are read."""

    def __init__(self, count: int):
        split, _ = load(limit=count)  # `use_device` is not called: our settings must not speed up this loop
        self.pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in split.images]
        self.labels = split.labels.tolist()
        self.mean, self.std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        padded = ImageOps.expand(self.pictures[index], PADDING)
        left, top = random.randint(0, 2 * PADDING), random.randint(0, 2 * PADDING)
        picture = padded.crop((left, top, left + 32, top + 32))
        if random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous().float() / 255
        return (tensor - self.mean) / self.std, self.labels[index]


def speed(network: str, batch_size: int, updates: int) -> float:
    """The images/s of `updates` updates, after WARM_UPDATES updates that do not count."""
    net = build(network)
    optimizer = SGD(net.parameters(), lr=RATE, momentum=0.9)
    # One epoch holds all timed updates, because a DataLoader starts new processes in each epoch. AHEAD more batches let
    # the processes load ahead at the end as much as at the beginning.
    pictures = Pictures(max(IMAGES, (WARM_UPDATES + updates + AHEAD) * batch_size))
    loader = DataLoader(pictures, batch_size, shuffle=True, num_workers=LOADERS, drop_last=True)
    done = 0
    while True:
        for images, labels in loader:
            if done == WARM_UPDATES:
                started = time.perf_counter()
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()  # the tutorial reads the loss of each update, too
            done += 1
            if done == WARM_UPDATES + updates:
                return updates * batch_size / (time.perf_counter() - started)


if __name__ == "__main__":
    print(speed(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
