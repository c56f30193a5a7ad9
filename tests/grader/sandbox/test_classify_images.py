"""The program that reads a checkpoint in the second sandbox refuses everything but the course's network."""

import pytest
import torch

from cifar.model import ResNet9
from grader.sandbox.guest_scripts import classify_images
from tests.support.checkpoints import as_checkpoint, good_state

BAD_STATES = {
    "is not a state dict": ["weights"],
    "prefix 'module.'": {f"module.{name}": value for name, value in good_state().items()},
    "it lacks classify.weight": {},
    "it has an entry 'extra'": good_state(extra=torch.ones(1)),
    "is float32 (10, 3), not float32 (10, 128)": good_state(**{"classify.weight": torch.ones(10, 3)}),
    "is float16 (10, 128)": good_state(**{"classify.weight": torch.ones(10, 128, dtype=torch.float16)}),
    "not finite": good_state(**{"classify.weight": torch.full((10, 128), torch.nan)}),
    "not a state dict that loads with weights_only=True": ResNet9(width=16),
}


@pytest.mark.parametrize("message", BAD_STATES)
def test_a_bad_checkpoint_is_a_message(message: str):
    with pytest.raises(classify_images.WrongCheckpoint) as refused:
        classify_images.load(as_checkpoint(BAD_STATES[message]), width=16)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
