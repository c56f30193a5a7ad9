"""JPEG files in memory hold the images and labels of the split that they were made from."""

import torch

from benchmarks.methods.jpeg_files import as_jpeg
from cifar.data import Split


def test_a_batch_holds_the_decoded_images_in_the_order_that_was_asked_for():
    """JPEG loses a little. So the images are compared up to a few of the 255 steps of a colour, on average."""
    ramp = torch.linspace(0, 60, 32).expand(3, 32, 32)
    colours = torch.tensor([[10, 20, 30], [100, 120, 90], [190, 150, 180]]).view(3, 3, 1, 1)
    images = (colours + ramp).to(torch.uint8)
    files = as_jpeg(Split("train", images, torch.tensor([7, 8, 9])))
    decoded, labels = files.batch(torch.tensor([2, 0]))
    assert len(files) == 3 and labels.tolist() == [9, 7]
    assert decoded.dtype == torch.uint8 and decoded.shape == (2, 3, 32, 32)
    assert (decoded.float() - images[[2, 0]].float()).abs().mean() < 4
