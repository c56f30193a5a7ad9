"""Images as JPEG files, which are decoded whenever they are fetched, as in data sets of large photographs."""

import io
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from cifar.data import Split

PIXELS = 320  # width and height; on our machine, to decode a file takes longer than an image's share of an update


@dataclass(frozen=True)
class JpegFiles:
    """The images of a split as JPEG files in memory, with int64 labels `(N,)`. It is used like a `Split`."""

    files: list[bytes]
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return the uint8 images `(B, 3, 32, 32)` and labels `(B,)` at the int64 `indices` `(B,)`.

        Each file is decoded, and its image is scaled down to 32 x 32 pixels.
        """
        return torch.stack([_decoded(self.files[index]) for index in indices]), self.labels[indices]


def as_jpeg(split: Split, pixels: int = PIXELS) -> JpegFiles:
    """Return the split's images, which lie on the processor, as JPEG files of `pixels` x `pixels`."""
    return JpegFiles([_encoded(image, pixels) for image in split.images], split.labels)


def _encoded(image: Tensor, pixels: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image.permute(1, 2, 0).numpy()).resize((pixels, pixels)).save(file, "JPEG", quality=90)
    return file.getvalue()


def _decoded(file: bytes) -> Tensor:
    small = Image.open(io.BytesIO(file)).resize((32, 32))
    return torch.from_numpy(np.array(small)).permute(2, 0, 1)
