"""C09: do random augmentations raise the training loss and the test accuracy, and by how much does each?

The augmentations are those of TensorFlow's CIFAR-10 tutorial: random crop, flip, brightness and contrast, and per-image
whitening. The variants use each of them alone, none of them, and all of them. Everything else is equal: seed, initial
weights, and order of the images. The training loss is that which a training script prints, on the augmented images.
Each variant is compared with `none`, seed by seed.
"""

from functools import partial

from torch import nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data, first
from benchmarks.experiment.intervals import Difference, paired
from benchmarks.experiment.plots import BLUE, GREY, counted, panels
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
GLANCE = 100  # test images after each epoch: few, because only the accuracy after the last epoch counts


def network(variant: str) -> nn.Module:
    """The lessons' network with batch normalisation. In variants with whitening, `Whiten` comes before it."""
    net = BootcampResNet(norm=nn.BatchNorm2d)
    return nn.Sequential(Whiten(), net) if variant in WHITENED else net


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the training loss of the last epoch (nats), and the accuracy (0 to 1) on the test and training parts.

    The images of both parts are not augmented for the accuracy.
    """
    train_part, test_part = data(settings)
    batch, epochs = settings["batch"], settings["epochs"]
    recipe = Recipe(net=partial(network, variant), batch_size=batch, epochs=epochs, change=CHANGES[variant])
    history = train(recipe, (train_part, first(test_part, GLANCE)), seed)
    values = {"train_loss": history.last["train_loss"], **evaluate(history.net, test_part, "test")}
    return values | {"train_accuracy": evaluate(history.net, train_part, "train", images=2000)["train_accuracy"]}


def effects(runs: Runs, name: str) -> dict[str, Difference]:
    """How much larger the value `name` is than without augmentation, seed by seed, for each variant."""
    plain = [run[name] for run in runs["none"]]
    return {
        variant: paired([run[name] for run in values][: len(plain)], plain[: len(values)])
        for variant, values in runs.items()
        if variant != "none"
    }


def _direction(effect: Difference) -> int:
    """The sign of an effect, or 0 if its interval contains zero."""
    return 0 if not effect.seen else 1 if effect.mean > 0 else -1


def judge(runs: Runs) -> Verdict:
    """The claim holds if every variant raises both the loss and the accuracy, and depends if only some do.

    If none raises both, the claim fails where one of them lowers either.
    """
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
    """The picture shows both effects of each variant, with their intervals."""
    figure, axes = panels(
        ("change of the training loss (nats)", "distortion"), ("change of the test accuracy (points)", "")
    )
    for ax, name, scale in zip(axes, ("train_loss", "test_accuracy"), (1, 100), strict=True):
        found = effects(runs, name)
        for place, effect in enumerate(found.values()):
            half = scale * (effect.high - effect.mean)
            spread = {"xerr": half, "capsize": 4} if half < float("inf") else {}
            ax.errorbar(scale * effect.mean, place, fmt="o", color=BLUE, markersize=6, **spread)
        ax.axvline(0, color=GREY, linestyle="--", marker="", linewidth=1)
        ax.set_yticks(range(len(found)), list(found))
        ax.invert_yaxis()
    accuracy = effects(runs, "test_accuracy")
    best = max(accuracy, key=lambda variant: accuracy[variant].mean)
    return Picture(
        figure,
        "Two panels with a row a distortion: points with 95 % intervals for the change of the training loss, left, and "
        f"of the test accuracy, right. Most to the right on the right: {best}.",
        f"What each distortion changes against none, "
        f"{counted(len(runs['none']), 'seed')}. Test accuracy rises most with "
        f"{best}: {accuracy[best].text(100, 1, ' points')}.",
    )


CLAIM = Claim(
    id="C09",
    statement="Random distortions (crop, flip, brightness, contrast, whitening) raise the training loss and the test "
    "accuracy.",
    source="S0",
    lesson="12_lab_of_lesson_02",
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
