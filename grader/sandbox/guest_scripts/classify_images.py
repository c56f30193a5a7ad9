"""This program runs in a sandbox. It loads a checkpoint that somebody else made, and classifies images with it.

The first argument is a folder with `model.pt`, `images` (uint8, N x 3 x 32 x 32) and `width`. The second argument is
the path of the answer. The answer begins with one line of JSON, `{"error": "", "weights": hash, "commitment": sha256}`.
After it come N x 10 logits as little-endian float32. The labels of the images are not in the sandbox. A checkpoint may
take over this process, but it cannot find out the right classes.
"""

import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector

from cifar.data import normalise
from cifar.model import ResNet9
from cifar.support.fingerprint import fingerprint
from cifar.workers import autocast

BATCH = 500  # images; one forward pass has so many, because more would need more memory
# Parts of the messages, by which the grader finds the advice that fits.
NO_STATE_DICT, NOT_FINITE = "is not a state dict", "numbers that are not finite"
PREFIX, OTHER_NETWORK = "the prefix 'module.'", "is not of"


class WrongCheckpoint(Exception):
    """The file is not a state dict of the course's network. The message says what differs."""


def read_state(content: bytes) -> dict[str, torch.Tensor]:
    """Return the state dict that a checkpoint's bytes hold. Raises WrongCheckpoint."""
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # anything can be wrong with a file that somebody else made
        reason = printable(str(error).split("\n")[0].split(". ")[0][:120]) or type(error).__name__
        raise WrongCheckpoint(f"{NO_STATE_DICT} that loads with weights_only=True: {reason}") from None
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise WrongCheckpoint(NO_STATE_DICT)
    return state


def printable(text: str) -> str:
    """Return the text with a space in place of each control character."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def compare(state: dict, wanted: dict[str, torch.Tensor], network: str) -> None:
    """Raise WrongCheckpoint unless `state` has exactly the entries of `wanted`.

    The entries must have the same types and shapes, and all their numbers must be finite.
    """
    if state and all(str(key).startswith("module.") for key in state):
        raise WrongCheckpoint(f"has names with {PREFIX}")
    if missing := sorted(wanted.keys() - state.keys()):
        raise WrongCheckpoint(f"{OTHER_NETWORK} {network}: it lacks {missing[0]}")
    if extra := sorted(map(str, state.keys() - wanted.keys())):
        raise WrongCheckpoint(f"{OTHER_NETWORK} {network}: it has an entry {extra[0][:60]!r}")
    for key, value in wanted.items():
        if kind(state[key]) != kind(value):
            raise WrongCheckpoint(f"{OTHER_NETWORK} {network}: {key} is {kind(state[key])}, not {kind(value)}")
        if not torch.isfinite(state[key]).all():
            raise WrongCheckpoint(f"{key} holds {NOT_FINITE}; the training diverged")


def kind(tensor: torch.Tensor) -> str:
    """Return a tensor's type, shape and layout in words, and its device if it is not the CPU."""
    layout = "" if tensor.layout == torch.strided else f" {tensor.layout}"
    # A tensor may be on the device `meta`, where it has no numbers.
    place = "" if tensor.device.type == "cpu" else f" on {tensor.device}"
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}{layout}{place}"


def load(content: bytes, width: int) -> ResNet9:
    """Return the course's network with the weights of a checkpoint. Raises WrongCheckpoint."""
    net = ResNet9(width)
    state = read_state(content)
    try:
        compare(state, net.state_dict(), f"ResNet9(width={width})")
        net.load_state_dict(dict(state))  # a plain dict has no metadata, which a checkpoint may bring along
    except WrongCheckpoint:
        raise
    except Exception as error:  # nested, quantised and other tensors raise many kinds of errors
        raise WrongCheckpoint(f"holds tensors of an unusual kind ({type(error).__name__})") from None
    return net.eval()


@torch.no_grad()
def classify(net: ResNet9, images: torch.Tensor) -> np.ndarray:
    """Return logits `(N, 10)` in float32 for uint8 images `(N, 3, 32, 32)`."""
    with autocast(images.device):
        logits = [net(normalise(batch)).float() for batch in images.split(BATCH)]
    return torch.cat(logits).numpy()


def main(folder: Path, answer: Path) -> None:
    """Read the folder and write the answer."""
    try:
        net = load((folder / "model.pt").read_bytes(), int((folder / "width").read_text()))
    except WrongCheckpoint as error:
        answer.write_text(json.dumps({"error": str(error)[:400], "weights": None, "commitment": None}) + "\n")
        return
    images = torch.frombuffer(bytearray((folder / "images").read_bytes()), dtype=torch.uint8).view(-1, 3, 32, 32)
    commitment = hashlib.sha256(parameters_to_vector(net.parameters()).detach().numpy().data).hexdigest()
    first = json.dumps({"error": "", "weights": fingerprint(net.parameters()), "commitment": commitment}) + "\n"
    answer.write_bytes(first.encode() + classify(net, images).astype("<f4").tobytes())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
