"""This exercise asks which images a worker uses in an epoch.

There are many right answers, so their properties are judged.
"""

from itertools import combinations

import numpy as np

from grader.exercises import Checked, Finding, TestCase

Call = dict[str, int]


def judge(calls: list[Call], answers: list) -> Finding:
    """Return a finding on the first property that the shards do not have."""
    shards = list(zip(calls, answers, strict=True))
    findings = [_one(call, answer) for call, answer in shards]
    if not any(finding.seen for finding in findings):
        findings = [_two(*first, *second) for first, second in combinations(shards, 2)] + [_left_over(shards)]
    return next((finding for finding in findings if finding.seen), Finding())


def _one(call: Call, answer: object) -> Finding:
    """Check that an answer can be a shard. All shards have equally many images, and each image at most once."""
    who, count, length = f"worker {call['rank']}", call["count"], call["count"] // call["size"]
    if not isinstance(answer, list):
        return Finding(f"{who} has no list", "Return a list of whole numbers.")
    strange = [index for index in answer if type(index) is not int or not 0 <= index < count]
    if strange:
        return Finding(
            f"{who} has {strange[0]!r:.40}", f"An index is a whole number from 0 to count - 1, here {count - 1}."
        )
    if len(answer) == count > length:
        return Finding(f"{who} has all {count} images", "Divide the images: each worker uses count // size of them.")
    if len(answer) != length:
        advice = (
            "All workers need equally many, count // size, or some would wait for the others' last update for ever."
        )
        return Finding(f"{who} has {len(answer)} images, not {length}", advice)
    if len(set(answer)) < length:
        return Finding(f"{who} has an image twice", "Cut up one order of all images; do not draw images one by one.")
    return Finding()


def _two(call: Call, shard: list[int], other: Call, other_shard: list[int]) -> Finding:
    """Check that the shards of two workers fit together, or those of one worker at two times."""
    if call == other:
        return Finding() if shard == other_shard else _not_repeated(call)
    if call["rank"] != other["rank"]:
        if call["epoch"] == other["epoch"]:
            return _workers(call["rank"], shard, other["rank"], other_shard)
        return _handed_on(call["rank"], shard, other["rank"], other_shard)
    return _times(call, shard, other, other_shard)


def _not_repeated(call: Call) -> Finding:
    advice = "Make a generator of your own from seed and epoch: nothing that was drawn before may change the order."
    return Finding(f"the same call answers differently for worker {call['rank']}", advice)


def _workers(rank: int, shard: list[int], other: int, other_shard: list[int]) -> Finding:
    if set(shard) == set(other_shard):
        advice = "Identical shards: the workers would all compute the same. Let rank decide which part a worker uses."
        return Finding(f"workers {rank} and {other} have the same images", advice)
    if common := set(shard) & set(other_shard):
        advice = "All workers must cut up one and the same order: seed and epoch decide it, and rank has no say in it."
        return Finding(f"workers {rank} and {other} both have image {min(common)}", advice)
    return Finding()


def _handed_on(rank: int, shard: list[int], other: int, other_shard: list[int]) -> Finding:
    if set(shard) != set(other_shard):
        return Finding()
    advice = "Shuffle all images anew in each epoch, then cut: these shards only change hands."
    return Finding(f"worker {other} has in one epoch what worker {rank} has in another", advice)


def _left_over(shards: list[tuple[Call, list[int]]]) -> Finding:
    """Check that the images that nobody uses change with the epoch. The calls of one worker alone cannot show this."""
    used: dict[int, set[int]] = {}
    for call, shard in shards:
        used.setdefault(call["epoch"], set()).update(shard)
    call = shards[0][0]
    if call["count"] % call["size"] == 0 or len(used) < 3 or any(use != used[call["epoch"]] for use in used.values()):
        return Finding()
    advice = "Shuffle all count images, then leave out the last of that order: else some are never used."
    return Finding("the same images are left over in each epoch", advice)


def _times(call: Call, shard: list[int], other: Call, other_shard: list[int]) -> Finding:
    changed = "epoch" if call["epoch"] != other["epoch"] else "seed"
    if shard == other_shard:
        return Finding(f"the order is the same for another {changed}", f"Shuffle anew: let {changed} change the order.")
    if shard == sorted(shard):
        return Finding("the shard is in ascending order", "Cut up the shuffled order as it is; do not sort it again.")
    if call["size"] > 1 and set(shard) == set(other_shard):
        advice = "Shuffle all images, then cut: else a worker sees its own part for ever, and the same are left over."
        return Finding(f"a worker has the same images for another {changed}", advice)
    return Finding()


def _epoch(draw: np.random.Generator, group: str, count: int, size: int) -> TestCase:
    """Draw the calls of all workers for one epoch."""
    seed, epoch = int(draw.integers(1000)), int(draw.integers(20))
    ranks = draw.permutation(size).tolist()
    return TestCase(group, [{"count": count, "rank": r, "size": size, "seed": seed, "epoch": epoch} for r in ranks])


def _again(draw: np.random.Generator, size: int) -> TestCase:
    """Draw one worker's calls for an epoch, the next epoch, the first epoch again, and another seed."""
    fixed = {"count": size * int(draw.integers(12, 20)), "rank": int(draw.integers(size)), "size": size}
    seed = int(draw.integers(1000))
    # A learner may add seed and epoch. Seed + 1 would then be the same as the next epoch.
    other = seed + int(draw.integers(2, 1000))
    epoch = int(draw.integers(20))
    times = (seed, epoch), (seed, epoch + 1), (seed, epoch), (other, epoch)
    return TestCase("another order each epoch", [{**fixed, "seed": seed, "epoch": epoch} for seed, epoch in times])


def _epochs(draw: np.random.Generator) -> TestCase:
    """Draw the calls of all workers for three epochs, with images left over.

    The shards are so large that two shuffled shards are hardly ever equal by chance.
    """
    size, seed, first = 3, int(draw.integers(1000)), int(draw.integers(20))
    count = size * int(draw.integers(12, 20)) + 2
    times = [(rank, first + later) for later in range(3) for rank in range(size)]
    calls = [{"count": count, "rank": rank, "size": size, "seed": seed, "epoch": epoch} for rank, epoch in times]
    return TestCase("another order each epoch", calls)


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(_epoch(draw, "one epoch", size * int(draw.integers(3, 7)), size) for size in (2, 3, 4, 1)),
        *(
            _epoch(draw, "a count that size does not divide", size * 4 + int(draw.integers(1, size)), size)
            for size in (3, 4)
        ),
        *(_again(draw, size) for size in (2, 3)),
        _epochs(draw),
    ]


EXERCISE = Checked(
    id="shard_indices",
    title="Which images a worker uses",
    signature="shard_indices(count: int, rank: int, size: int, seed: int, epoch: int) -> list[int]",
    statement="""\
Return the indices (0 to count - 1) of the images that worker `rank` of `size` workers uses in epoch number `epoch`, as
a list, in the order of use.

In an epoch each worker has count // size images, and no image goes to two workers. Together they use all images, except
for at most size - 1 images that are left over. All images are shuffled. Another epoch has another order, and so has
another seed. So a worker gets other images each time. The workers do not talk to each other: each calls your function
in a process of its own. So the same call must have the same answer on every worker.

For example, with count 8 and size 4 the four workers may get [5, 2], [0, 7], [3, 6] and [1, 4] in one epoch, and
[6, 0], [2, 5], [4, 1] and [7, 3] in the next. Many other answers are right as well.

Goyal et al. 2017 (arXiv:1706.02677), section 3, "Data shuffling".""",
    groups={"one epoch": 2, "a count that size does not divide": 1, "another order each epoch": 2},
    draw=_draw,
    judge=judge,
)
