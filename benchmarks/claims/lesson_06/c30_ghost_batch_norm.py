"""C30: each worker's batch normalisation uses its own images alone. Does it matter how few these are?

The global batch, its images, the updates and the rate are the same in all variants. The variants differ in the number
of images over which mean and variance are computed. It ranges from "ghost batches" of 32 images (Hoffer et al. 2017,
arXiv:1705.08741) to the global batch, which synchronised batch normalisation uses.
"""

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments.simulated_workers import Recipe, train

SHARES = (16, 8, 4, 2)  # numbers of workers; each worker normalises its own share of the global batch
VARIANTS = (*(f"local-{size}" for size in SHARES), "synchronised")
SMALL = 0.02  # accuracy (0 to 1): two runs that differ only in the seed may differ by about as much


def recipe(variant: str, settings: Settings) -> Recipe:
    """The recipe of a variant.

    In `local-16`, each of 16 workers normalises its own images. In `synchronised`, two workers normalise all images
    together.
    """
    size = 2 if variant == "synchronised" else int(variant.removeprefix("local-"))
    return Recipe(
        size=size, batch_size=settings["global_batch"] // size, epochs=settings["epochs"],
        synchronised=variant == "synchronised",
    )  # fmt: skip


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the accuracy and losses after the last epoch. `normalised` counts the images normalised together."""
    made = recipe(variant, settings)
    last = train(made, data(settings), seed).last
    normalised = made.batch_size * (made.size if made.synchronised else 1)
    return {"normalised": normalised, **{name: last[name] for name in ("test_accuracy", "test_loss", "train_loss")}}


def _values(runs: Runs, variant: str, name: str) -> list[float]:
    return [run[name] for run in runs[variant]]


def effects(runs: Runs) -> dict[int, Difference]:
    """The local minus the synchronised accuracy, by the number of images that are normalised together."""
    together = _values(runs, "synchronised", "test_accuracy")
    found = {variant: difference(_values(runs, variant, "test_accuracy"), together) for variant in VARIANTS[:-1]}
    return {runs[variant][0]["normalised"]: change for variant, change in found.items()}


def judge(runs: Runs) -> Verdict:
    """The claim holds if every interval lies within SMALL. It fails if all lie beyond it, and depends if some do."""
    found = effects(runs)
    accuracy = mean_std(_values(runs, "synchronised", "test_accuracy"), 100, 1)
    each = "; ".join(f"{size} images {change.text(100, 1, ' points')}" for size, change in found.items())
    text = f"test accuracy with local statistics beside synchronised ones ({accuracy} %): {each}"
    points = f"{100 * SMALL:.0f} points"
    if all(change.low > -SMALL and change.high < SMALL for change in found.values()):
        return Verdict("holds", f"no local size differs by more than {points}: {text}.")
    large = [size for size, change in found.items() if change.high < -SMALL or change.low > SMALL]
    if len(large) == len(found):
        return Verdict("fails", f"every local size differs by more than {points}: {text}.")
    if large:
        return Verdict("depends", f"more than {points} are seen for {_listed(large)} images alone: {text}.")
    return Verdict("no difference seen", f"the intervals reach beyond {points}, none lies beyond: {text}.")


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))


def picture(runs: Runs) -> Picture:
    """The picture shows test accuracy and training loss against the number of images normalised together."""
    x = "images normalised together"
    figure, (accuracy, loss) = panels((x, "test accuracy (%)"), (x, "training loss, last epoch (nats)"))
    for ax, name, scale in ((accuracy, "test_accuracy", 100), (loss, "train_loss", 1)):
        _draw(ax, runs, name, scale)
    sizes = [runs[variant][0]["normalised"] for variant in VARIANTS]
    means = [100 * np.mean(_values(runs, variant, "test_accuracy")) for variant in VARIANTS]
    listed = ", ".join(f"{size}: {mean:.1f} %" for size, mean in zip(sizes, means, strict=True))
    return Picture(
        figure,
        f"Two plots against the number of images that are normalised together. Test accuracy: {listed}.",
        f"Mean and sample deviation over "
        f"{counted(min(map(len, runs.values())), 'run')}, one dot for each run. The global batch is "
        f"{sizes[-1]} images everywhere; the last point is synchronised. Accuracies lie within "
        f"{max(means) - min(means):.1f} points.",
    )


def _draw(ax, runs: Runs, name: str, scale: float) -> None:
    sizes = [runs[variant][0]["normalised"] for variant in VARIANTS]
    values = [scale * np.array(_values(runs, variant, name)) for variant in VARIANTS]
    ax.errorbar(sizes, [found.mean() for found in values], [deviation(found) for found in values], capsize=3)
    for size, found in zip(sizes, values, strict=True):
        ax.plot(np.full(len(found), size), found, "k.", linestyle="none", alpha=0.5)
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])


CLAIM = Claim(
    id="C30",
    statement="Normalising each worker's images on their own (local, or ghost, batch normalisation) has only a small "
    "effect beside synchronised statistics.",
    source="S4",
    lesson="06_techniques",
    variants=VARIANTS,
    seeds=5,
    settings={"images": 16_384, "epochs": 6, "global_batch": 512},
    quick={"images": 2048, "epochs": 2, "global_batch": 128, "test_images": 1000},
    run=run,
    judge=judge,
    picture=picture,
    caution="One seed cannot tell a small effect from chance, and the quick run's global batch is smaller, so that its "
    "smallest ghost batches hold only a few images.",
)
