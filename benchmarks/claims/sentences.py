"""What each claim's results say, in one sentence that a person would say.

A sentence has at most WORDS words. Its numbers come from the results. Words such as "lower" or "hardly" do not, so each
sentence comes with a condition. A test fails and names the sentence if saved results no longer meet it.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np

from benchmarks import claims
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.runner import Series

WORDS = 25  # at most in a sentence


class Said(NamedTuple):
    """A sentence, and whether the results say so."""

    text: str
    true: bool


def said(id: str, runs: Runs) -> Said:
    """The sentence of a claim for these runs. Raises KeyError if there is no such claim."""
    claim = claims.get(id)
    return SENTENCES[id](sys.modules[claim.judge.__module__], runs)


def shortest(saved: Series) -> str:
    """The sentence of a claim. If the results do not say so, it is that of the verdict."""
    found = said(saved.claim.id, saved.runs)
    return found.text if found.true else saved.verdict.sentence


def _c01(c01: ModuleType, runs: Runs) -> Said:
    plain, own, shared = (c01.worst(runs, network) for network in c01.NETWORKS)
    return Said(
        f"The mean gradient of several workers equals one worker's to {-np.log10(plain):.0f} digits, unless batch "
        "normalisation lets the images of a batch see each other.",
        plain <= c01.EQUAL and shared <= c01.EQUAL < own,
    )


def _c02(c02: ModuleType, runs: Runs) -> Said:
    wrong = max(c02.values(runs, order, "plain").mean(0)[-1] for order in c02.ORDERS)
    right = max(c02.values(runs, order, "weighted").max() for order in c02.ORDERS)
    return Said(
        f"With unequal shards the plain mean is wrong by up to {100 * wrong:.0f} % of the gradient's length, and the "
        "mean weighted by counts is exact.",
        wrong > 0.5 and right < c02.EQUAL,
    )


def _c03(c03: ModuleType, runs: Runs) -> Said:
    return Said(
        "The squared error of a batch's gradient falls as one over the batch size, so averaging over more images makes "
        "it more accurate.",
        abs(np.mean(c03.slopes(runs)) + 1) < 0.1,
    )


def _c04(c04: ModuleType, runs: Runs) -> Said:
    epochs, updates = (c04.gap(runs, "falling", 4, equal) for equal in ("epochs", "updates"))
    return Said(
        f"Two workers end level with one, four end {-100 * epochs.mean:.1f} points lower, and after equal updates four "
        f"end {100 * updates.mean:.1f} points higher.",
        not c04.gap(runs, "falling", 2, "epochs").seen and epochs.high < 0 < updates.low,
    )


def _c05(c05: ModuleType, runs: Runs) -> Said:
    apart = max(max(c05.distances(runs, variant, "divided")) for variant in c05.SIZES if variant != "1_worker")
    price = c05.price(runs, "4_workers")
    return Said(
        f"With the batch divided, four workers repeat one worker's losses to within {apart:.4f}, and each computes "
        f"{-100 * price.mean:.0f} % fewer images per second.",
        apart < 0.001 and price.high < 0,
    )


def _c06(c06: ModuleType, runs: Runs) -> Said:
    base, scaled = (c06.gain(runs, start) for start in ("base", "scaled"))
    return Said(
        f"If the rate falls by epoch and not by step, four workers end {-100 * base.mean:.1f} points lower, and "
        f"{-100 * scaled.mean:.1f} points with a scaled rate.",
        base.high < 0 and scaled.high < 0,
    )


def _c07(c07: ModuleType, runs: Runs) -> Said:
    wrong, all = len(c07.pairs(runs, *c07.PAIRS[2], agreeing=False)), len(c07.VARIANTS)
    return Said(
        f"In {wrong} of {all * (all - 1) // 2} pairs of recipes, the one with the lower training loss has the lower "
        "test accuracy.",
        wrong > 0,
    )


def _c08(c08: ModuleType, runs: Runs) -> Said:
    size, ratio = len(runs["training"][0]["workers"][0]), np.mean(c08.ratios(runs))
    return Said(
        f"One worker's printed loss scatters {ratio:.1f} times as much as the mean over all {size} workers, about "
        f"√{size}.",
        abs(np.log(ratio / size**0.5)) < np.log1p(c08.NEAR),
    )


def _c09(c09: ModuleType, runs: Runs) -> Said:
    found = c09.effects(runs, "test_accuracy")
    return Said(
        f"Shifting the images raises test accuracy by {100 * found['shift'].mean:.1f} points, changing their contrast "
        f"lowers it by {-100 * found['contrast'].mean:.1f}, and whitening changes nothing that can be seen.",
        found["shift"].low > 0 > found["contrast"].high and not found["whitening"].seen,
    )


def _c10(c10: ModuleType, runs: Runs) -> Said:
    loss, spread = c10.last_losses(runs, "stale"), c10.last_spreads(runs)
    rise, fall = c10.paired(loss[:, -1], loss[:, 0]), c10.paired(spread[:, -1], spread[:, 0])
    return Said(
        f"A gradient that is {c10.STALENESS[-1]} updates late raises the training loss by {rise.mean:.2f}, and a "
        "stiffer spring keeps workers closer together.",
        rise.low > 0 > fall.high,
    )


def _c11(c11: ModuleType, runs: Runs) -> Said:
    growth, batches = c11.growth(runs, "one-rate").mean(), runs["one-rate"][0]["batches"]
    stuck = any(np.isinf(c11.updates(runs, variant)).any() for variant in runs)
    return Said(
        f"No batch gets stuck at the saddle, but at one rate {batches[-1] / batches[0]:,.0f} times the batch needs "
        f"{growth:.1f} times as many updates to leave.",
        not stuck and growth > 1.5,
    )


def _c12(c12: ModuleType, runs: Runs) -> Said:
    rest = max(run["distance"] for run in runs["gradient-descent"])
    powers = np.mean([c12.powers(run) for run in runs["sgd"]], axis=0)
    return Said(
        "Gradient descent comes to rest at the minimum, and SGD scatters about it, further away with a higher rate or "
        "a smaller batch.",
        rest < c12.REST and min(powers) > 0.1,
    )


def _c13(c13: ModuleType, runs: Runs) -> Said:
    strong, weak = (1 - c13.efficiency(runs, "4_workers", way).mean() for way in ("strong", "weak"))
    return Said(
        f"With four workers the exchange costs {100 * strong:.0f} % of the speed if they divide the batch, "
        f"{100 * weak:.0f} % if each keeps it.",
        c13.gaps(runs)["4_workers"].high < 0,
    )


def _c14(c14: ModuleType, runs: Runs) -> Said:
    found = c14.limits(runs).values()
    return Said(
        "How many workers are worth having depends on the network and the links: in our cases between "
        f"{min(found):,.0f} and {max(found):,.0f}.",
        min(found) <= c14.TENS < max(found),
    )


def _c15(c15: ModuleType, runs: Runs) -> Said:
    found = [np.mean(c15.powers(runs, variant)) for variant in c15.OPTIMIZERS]
    return Said(
        "With the rate fixed, the path of an epoch shrinks nearly in proportion to the number of workers.",
        all(abs(power + 1) < c15.ABOUT for power in found),
    )


def _c16(c16: ModuleType, runs: Runs) -> Said:
    growth, last = np.mean(c16._summary(runs)["growth"]), runs["updates"][0]["batches"][-1]
    return Said(
        f"Doubling the batch from {last // 2:,} to {last:,} images changes the throughput by "
        f"{100 * abs(growth - 1):.0f} %: it stopped growing long before.",
        growth < c16.STILL_GROWING,
    )


def _c17(c17: ModuleType, runs: Runs) -> Said:
    training, evaluation = (
        np.mean([run["peaks"][-1] for run in runs[mode]]) / c17.MEBI for mode in ("training", "evaluation")
    )
    return Said(
        f"With {runs['training'][0]['batches'][-1]} images training takes {training:.0f} MiB and evaluation "
        f"{evaluation:.0f}, and the stored activations explain how it grows with the batch.",
        c17.judge(runs).word == "holds",
    )


def _c18(c18: ModuleType, runs: Runs) -> Said:
    right, wrong = (
        np.mean([run[name] for run in runs["relu entropy"]]) for name in ("accuracy", "accuracy_with_means")
    )
    return Said(
        "Back-propagating a batch's mean activations gives a wrong gradient: a network trained with it reaches "
        f"{100 * wrong:.0f} % instead of {100 * right:.0f} %.",
        wrong < right - 0.1,
    )


def _c19(c19: ModuleType, runs: Runs) -> Said:
    whole, _ = c19.speeds(runs, "vectorised", "in_turn")
    slow, said = c19.speeds(runs, c19.DECODED, "in_turn")
    tiny = [c19.speeds(runs, c19.SMALL, way) for way in ("in_turn", "prefetched")]  # measured, and predicted
    return Said(
        f"Decoding each image makes training {100 * (1 - slow / whole):.0f} % slower, as the stages "
        "predict. For a tiny network, the stages predict too high a rate.",
        slow < 0.9 * whole and abs(slow / said - 1) < 0.05 and all(rate < 0.95 * told for rate, told in tiny),
    )


def _c20(c20: ModuleType, runs: Runs) -> Said:
    first, second = c20.growth(runs, 1, 8), c20.growth(runs, 8, 32)
    return Said(
        f"From 1 to 8 workers the best rate grows {2**first.mean:.1f} times, and from 8 to 32 workers only "
        f"{2**second.mean:.1f} times.",
        first.low > 0 and second.high < 1,
    )


def _c21(c21: ModuleType, runs: Runs) -> Said:
    mb = {variant: np.mean([c21.busiest(run)[-1] for run in runs[variant]]) / 1e6 for variant in ("central", "ring")}
    return Said(
        f"With {runs['central'][0]['sizes'][-1]} workers the busiest link carries {mb['central']:.0f} MB where the "
        f"server computes, and {mb['ring']:.0f} MB in a ring.",
        mb["central"] > 2 * mb["ring"],
    )


def _c22(c22: ModuleType, runs: Runs) -> Said:
    all, own = (np.mean([c22.times(run) for run in runs[variant]], 0)[-1] for variant in c22.CUTS)
    size = runs["shard"][0]["sizes"][-1]
    return Said(
        f"With the whole batch each of {size} workers receives {all / own:.1f} times the bytes that it needs.",
        abs(all / own / size - 1) < c22.CLOSE,
    )


def _c23(c23: ModuleType, runs: Runs) -> Said:
    size, found = runs["sums"][0]["sizes"][-1], {name: c23.times(runs, name)[1] for name in c23.SUMS}
    strong = {name for name, decay in found.items() if abs(decay / size - 1) < c23.CLOSE}
    return Said(
        f"The decay is {size} times too strong where it is added inside each worker's loss, whatever the loss is "
        "divided by.",
        strong == {"n, inside", "kn, inside"},
    )


def _c24(c24: ModuleType, runs: Runs) -> Said:
    first, late = (np.mean(c24.wrong(runs, "down", *part)) for part in ((0, 1), (c24.SETTLED, None)))
    return Said(
        f"After the rate falls, the first update without correction is {first:.1f} times too long, and after "
        f"{c24.SETTLED} updates it is right again.",
        first > c24.WRONG > late,
    )


def _c25(c25: ModuleType, runs: Runs) -> Said:
    one, own = (np.mean([c25.coverage(run)[-1] for run in runs[way]]) for way in ("one shuffle", "own shuffles"))
    return Said(
        f"One shuffle divided among {runs['one shuffle'][0]['sizes'][-1]} workers uses every image in an epoch, "
        f"shuffles of their own use only {100 * own:.0f} %.",
        one == 1 and own < 0.8,
    )


def _c26(c26: ModuleType, runs: Runs) -> Said:
    found = {variant: c26.times(runs, variant) for variant in c26.SIZES}
    ms = {way: 1000 * found["2_workers"][way].mean() for way in ("on", "off")}
    return Said(
        f"Overlap saves no time here: with two workers an update takes {ms['on']:.0f} ms with it, {ms['off']:.0f} "
        "without.",
        all(of["on"].mean() > of["off"].mean() for of in found.values()),
    )


def _c27(c27: ModuleType, runs: Runs) -> Said:
    return Said(
        "Leave out any one of Horovod's key changes, and a symptom shows that the program is wrong or wasteful, though "
        "it seldom crashes.",
        c27.judge(runs).word == "holds",
    )


def _c28(c28: ModuleType, runs: Runs) -> Said:
    found = c28.finding(runs)
    return Said(
        f"Beyond about {np.mean(found.critical):.0f} images, larger batches save ever fewer updates, and the noise "
        f"scale of {np.mean(found.noise):.0f} images tells that order of magnitude.",
        1 / c28.AGREE < found.ratio < c28.AGREE and found.misfit < c28.FITS,
    )


def _c29(c29: ModuleType, runs: Runs) -> Said:
    epochs, updates = (c29.sharper(runs, variant) for variant in ("large-epochs", "large-updates"))
    return Said(
        f"Eight times the batch ends at places {np.exp(epochs.mean):.0f} times as sharp at equal epochs, but only "
        f"{np.exp(updates.mean):.1f} times at equal updates.",
        epochs.low > updates.high and updates.low > 0,
    )


def _c30(c30: ModuleType, runs: Runs) -> Said:
    found = c30.effects(runs).values()
    return Said(
        "Local batch statistics change the test accuracy by less than a point beside synchronised ones, which the "
        "seeds cannot tell apart.",
        all(abs(change.mean) < 0.01 and not change.seen for change in found),
    )


def _c31(c31: ModuleType, runs: Runs) -> Said:
    base, scaled, warm = (np.mean(c31.accuracies(runs, f"adam-0.001-{mode}")) for mode in c31.MODES)
    low, high = (c31.gained(runs, name) for name in ("sgd-0.005", "sgd-0.02"))
    return Said(
        f"Warmup brings Adam from {100 * scaled:.0f} to {100 * warm:.0f} %. It helps SGD at the higher rate, and at "
        "the lower rate SGD does not need it.",
        scaled < base - 0.05 and c31.gained(runs, "adam-0.001").low > 0 and high.low > 0 and not low.seen,
    )


def _c32(c32: ModuleType, runs: Runs) -> Said:
    found = c32.steps(runs)
    return Said(
        f"Eight workers with shards lose {-100 * found['workers'].mean:.1f} points against one, and batch "
        f"normalisation wins back {100 * found['batch norm'].mean:.1f} of them, before any rate is scaled.",
        found["workers"].high < 0 < found["batch norm"].low,
    )


SENTENCES: dict[str, Callable[[ModuleType, Runs], Said]] = {
    f"C{number:02}": globals()[f"_c{number:02}"] for number in range(1, 33)
}
