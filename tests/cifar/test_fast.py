"""The parts of the fast script are tested one by one, and the script runs on four workers."""

from pathlib import Path

import pytest
import torch
from torch import nn

from cifar import fast
from cifar.data import crop, flip, load, normalise
from cifar.fast import (
    PATCH,
    PLANS,
    FastNet,
    Lookahead,
    pixels,
    triangular_schedule,
    whiten,
)
from tests.conftest import SCRIPTS, metrics, run_workers

WIDTHS = PLANS["cpu"].widths


@pytest.mark.parametrize(("device", "millions"), [("cpu", 0.7), ("cuda", 2.0)])
def test_images_become_logits(device: str, millions: float):
    net = FastNet(PLANS[device].widths)
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert 0.8 * millions < sum(weight.numel() for weight in net.parameters()) / 1e6 < millions


def test_cores_see_smaller_images_first_and_are_evaluated_on_images_as_they_are():
    net = FastNet(WIDTHS)
    assert PLANS["cpu"].evaluated(net) is net and PLANS["cpu"].pixels(0, 10) == 20
    assert isinstance(PLANS["cuda"].evaluated(net), fast.TestTimeAugmentation) and PLANS["cuda"].pixels(0, 10) == 32


def test_test_time_augmentation_flips_and_shifts_by_a_pixel():
    """The network in this test reads one pixel left of the middle.

    So the mean must contain this pixel, the pixel that the flip moves there, and the neighbours of both that the shifts
    move there.
    """
    image = torch.arange(36.0).view(1, 1, 6, 6)
    read = nn.Conv2d(1, 1, 6, bias=False)
    nn.init.zeros_(read.weight)
    read.weight.data[0, 0, 3, 2] = 1.0
    at = image[0, 0]
    expected = (at[3, 2] + at[3, 3]) / 4 + (at[2, 1] + at[2, 2]) / 8 + (at[4, 3] + at[4, 4]) / 8
    assert fast.TestTimeAugmentation(read)(image).item() == expected
    assert not fast.TestTimeAugmentation(read).eval().net.training


def test_early_epochs_see_smaller_images_and_the_last_never():
    assert [pixels(epoch, 10) for epoch in range(10)] == [20] * 3 + [24] * 3 + [32] * 4
    assert all(pixels(epochs - 1, epochs) == 32 for epochs in range(1, 40))
    net, seen = FastNet(WIDTHS), []
    net[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[-2:]))
    for net.pixels in (20, 24, 32):
        assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert seen == [(20, 20), (24, 24), (32, 32)]


def test_a_block_begins_by_passing_its_inputs_on():
    first = FastNet(WIDTHS)[2][0]
    x = torch.randn(1, first.in_channels, 8, 8)
    assert torch.allclose(first(x)[:, : first.in_channels], x)


def test_whitened_patches_are_uncorrelated_and_of_one_size(cifar10: Path):
    images = normalise(load(cifar10, limit=500)[0].images)
    net = FastNet(WIDTHS)
    whiten(net, images)
    with torch.no_grad():
        outputs = net[0](images).transpose(0, 1).flatten(1)[: 3 * PATCH**2]
    covariance = outputs @ outputs.T / outputs.shape[1]
    assert (covariance - torch.diag(covariance.diag())).abs().max() < 1e-3
    assert covariance.diag().min() > 0.5 and covariance.diag().max() <= 1.001
    assert not net[0].weight.requires_grad and torch.equal(net[0].weight[:12], -net[0].weight[12:])


def test_lookahead_replaces_the_weights_by_their_average():
    net = nn.Linear(1, 1, bias=False)
    nn.init.constant_(net.weight, 1.0)
    lookahead = Lookahead(net)
    nn.init.constant_(net.weight, 3.0)
    lookahead.update(0.75)
    assert net.weight.item() == 1.5
    nn.init.constant_(net.weight, 9.0)
    lookahead.update(1.0)
    assert net.weight.item() == 1.5


def test_the_schedule_is_triangular():
    assert triangular_schedule(0, 100) == pytest.approx(0.2) and triangular_schedule(23, 100) == pytest.approx(1)
    assert triangular_schedule(100, 100) == pytest.approx(0.07)
    assert all(triangular_schedule(at, 100) < triangular_schedule(at + 1, 100) for at in range(22))


def test_crop_and_flip_keep_the_middle_of_an_image():
    torch.manual_seed(0)
    images = torch.randint(256, (50, 3, 32, 32), dtype=torch.uint8)
    cropped = crop(images, 2)
    fits = {
        (down, right)
        for image, result in zip(images, cropped, strict=True)
        for down in range(-2, 3)
        for right in range(-2, 3)
        if torch.equal(result[:, 2:-2, 2:-2], image[:, 2 + down : 30 + down, 2 + right : 30 + right])
    }
    assert len(fits) > 15
    which = torch.arange(50) % 2 == 1
    assert torch.equal(flip(images, which)[0::2], images[0::2])
    assert torch.equal(flip(images, which)[1::2], images[1::2].flip(-1))


@pytest.mark.slow
def test_four_workers_train_it(tmp_path: Path):
    options = ("--images", 2048, "--epochs", 3, "--batch-size", 32, "--output-dir", tmp_path)
    done = run_workers(4, SCRIPTS / "cifar_fast.py", *options)
    assert done.returncode == 0, done.stderr
    lines = metrics(tmp_path)
    assert len(lines) == 3 and lines[-1]["test_accuracy"] > 0.3 and lines[-1]["train_loss"] < lines[0]["train_loss"]
    net = FastNet(WIDTHS)
    net.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
