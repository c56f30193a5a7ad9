"""C09: do random augmentations raise the training loss and the test accuracy, and by how much each?

The augmentations are those of TensorFlow's CIFAR-10 tutorial: shifted crop, mirroring, brightness, contrast and
per-image whitening. Each is tried alone, then none, and all of them. Everything else is equal: seed, first weights, and
order of the images. The training loss is the one that a training script prints, on the augmented images. Each variant
is compared with none, seed by seed.
"""

from functools import partial

from torch import nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data, first
from benchmarks.experiment.intervals import Difference, paired
from benchmarks.experiment.plots import panels
from benchmarks.instruments.simulated_workers import Recipe, evaluate, train
from benchmarks.methods.augmentations import (
    Change,
    Whiten,
    compose,
    random_brightness,
    random_contrast,
    random_crop,
    random_flip,
    unchanged,
)
from cifar.model import BootcampResNet

CHANGES: dict[str, Change] = {
    "none": unchanged,
    "shift": random_crop,
    "mirror": random_flip,
    "brightness": random_brightness,
    "contrast": random_contrast,
    "whitening": unchanged,
    "all": compose(random_crop, random_flip, random_brightness, random_contrast),
}
WHITENED = ("whitening", "all")
GLANCE = 100  # test images at the end of each epoch: the accuracy that counts is taken once, at the end of all


def network(variant: str) -> nn.Module:
    """The lessons' network with batch normalisation, behind `Whiten` where the variant has it."""
    net = BootcampResNet(norm=nn.BatchNorm2d)
    return nn.Sequential(Whiten(), net) if variant in WHITENED else net


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Training loss of the last epoch (nats), and accuracy on the test part and on the training part as it is."""
    train_part, test_part = data(settings)
    batch, epochs = settings["batch"], settings["epochs"]
    recipe = Recipe(net=partial(network, variant), batch_size=batch, epochs=epochs, change=CHANGES[variant])
    history = train(recipe, (train_part, first(test_part, GLANCE)), seed)
    values = {"train_loss": history.last["train_loss"], **evaluate(history.net, test_part, "test")}
    return values | {"train_accuracy": evaluate(history.net, train_part, "train", images=2000)["train_accuracy"]}


def effects(runs: Runs, name: str) -> dict[str, Difference]:
    """By variant: how much larger `name` is than without augmentation, seed by seed."""
    plain = [run[name] for run in runs["none"]]
    return {
        variant: paired([run[name] for run in values][: len(plain)], plain[: len(values)])
        for variant, values in runs.items()
        if variant != "none"
    }


def _direction(effect: Difference) -> int:
    """1 and -1 for what lies outside the noise, 0 inside."""
    return 0 if not effect.seen else 1 if effect.mean > 0 else -1


def judge(runs: Runs) -> Verdict:
    """Whether each augmentation raises both. One that lowers either speaks against the claim."""
    loss, accuracy = effects(runs, "train_loss"), effects(runs, "test_accuracy")
    found = {variant: (_direction(loss[variant]), _direction(accuracy[variant])) for variant in loss}
    text = "against no distortion, " + "; ".join(
        f"{variant}: training loss {loss[variant].text()}, test accuracy {accuracy[variant].text(100, 1, ' points')}"
        for variant in loss
    )
    raised = [variant for variant, both in found.items() if both == (1, 1)]
    lowered = [variant for variant, both in found.items() if -1 in both]
    if len(raised) == len(found):
        return Verdict("holds", f"each raises both: {text}.")
    if raised:
        return Verdict("depends", f"on the distortion: {_names(raised)} raise{'s' * (len(raised) == 1)} both; {text}.")
    if lowered:
        return Verdict("fails", f"none is seen to raise both, {_names(lowered)} to lower one of them: {text}.")
    return Verdict("no difference seen", f"none is seen to raise both, or to lower one of them: {text}.")


def _names(variants: list[str]) -> str:
    return " and ".join([", ".join(variants[:-1]), variants[-1]] if len(variants) > 1 else variants)


def picture(runs: Runs) -> Picture:
    """Both effects of each variant, with their intervals."""
    figure, axes = panels(
        ("change of the training loss (nats)", "distortion"), ("change of the test accuracy (points)", "")
    )
    for ax, name, scale in zip(axes, ("train_loss", "test_accuracy"), (1, 100), strict=True):
        found = effects(runs, name)
        for place, effect in enumerate(found.values()):
            half = scale * (effect.high - effect.mean)
            spread = {"xerr": half, "capsize": 4} if half < float("inf") else {}
            ax.errorbar(scale * effect.mean, place, fmt="o", color="#0b3c5d", markersize=6, **spread)
        ax.axvline(0, color="#888888", linestyle="--", marker="", linewidth=1)
        ax.set_yticks(range(len(found)), list(found))
        ax.invert_yaxis()
    accuracy = effects(runs, "test_accuracy")
    best = max(accuracy, key=lambda variant: accuracy[variant].mean)
    return Picture(
        figure,
        "Two panels with a row a distortion: points with 95 % intervals for the change of the training loss, left, and "
        f"of the test accuracy, right. Most to the right on the right: {best}.",
        f"What each distortion changes against none, {len(runs['none'])} seed(s). Test accuracy rises most with "
        f"{best}: {accuracy[best].text(100, 1, ' points')}.",
    )


CLAIM = Claim(
    id="C09",
    statement="Random distortions (crop, flip, brightness, contrast, whitening) raise the training loss and the test "
    "accuracy.",
    source="S0",
    lesson="02_one_worker",
    variants=tuple(CHANGES),
    seeds=5,
    settings={"images": 4000, "epochs": 15, "batch": 128},
    quick={"images": 1024, "epochs": 2, "batch": 64, "test_images": 1000},
    run=run,
    judge=judge,
    picture=picture,
    caution="Distortions pay where a network would otherwise learn its images by heart, and two short epochs are too "
    "few for that; one seed gives no interval either.",
)
