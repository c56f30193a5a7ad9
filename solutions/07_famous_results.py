# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 07 Famous results re-examined
#
# **After this notebook you will be able to** find what a table of results leaves out, rebuild it one factor at a time,
# and say what it shows and what it cannot show.
#
# **Time:** about {{minutes_07}} minutes, and no waiting: all runs of this notebook are saved. **Builds on:** all
# notebooks so far, 05 and 06 above all.
#
# Two kinds of famous results: the records of training ImageNet in minutes, and a table of techniques with a number for
# each. Why could others repeat the records, but learn little from the table?

# %%
import numpy as np
from IPython.display import Markdown

from benchmarks.claims.lesson_07.c32_techniques import CHOSEN, RATES, accuracies
from benchmarks.experiment.intervals import deviation, difference, mean_std
from benchmarks.experiment.plots import BLUE, GREY
from lessons import axes, compare, panels, saved, show

# %% [markdown]
# ## The records: from two weeks to a minute
#
# ResNet-50 on ImageNet, some 90 epochs, to about 75 or 76 % of the validation images right: for some years this was a
# race. The numbers below are the authors' own.
#
# | year | processors | global batch | time | published in |
# | --- | --- | --- | --- | --- |
# | | 1 M40 GPU | | 14 days | as told by You et al. 2017, arXiv:1709.05011 |
# | 2017 | 256 P100 GPUs | 8,192 | 1 hour | Goyal et al., arXiv:1706.02677 |
# | 2017 | 2,048 KNL CPUs | 32,768 | 20 minutes | You et al., arXiv:1709.05011 |
# | 2017 | 1,024 P100 GPUs | 32,768 | 15 minutes | Akiba et al., arXiv:1711.04325 |
# | 2018 | 2,048 P40 GPUs | 65,536 | 6.6 minutes | Jia et al., arXiv:1807.11205 |
# | 2018 | 1,024 TPU v3 chips | 32,768 | 2.2 minutes | Ying et al., arXiv:1811.06992 |
# | 2019 | 2,048 V100 GPUs | 81,920 | 74.7 seconds | Yamazaki et al., arXiv:1903.12650 |

# %%
RECORDS = ((1, 14 * 24 * 60), (256, 60), (2048, 20), (1024, 15), (2048, 6.6), (1024, 2.2), (2048, 74.7 / 60))
processors, minutes = np.array(RECORDS).T
figure, ax = axes("processors", "minutes to train")
ax.loglog(processors, minutes, "o", linestyle="none", label="published")
ax.loglog([1, 2048], minutes[0] / np.array([1, 2048]), "--", marker="", label="the M40's time, divided")
ax.legend()
faster = f"{minutes[0] / minutes[-1]:,.0f} times as fast with {processors[-1]:,.0f} times as many processors"
show(
    figure,
    f"Published times of seven records beside the line of one GPU's time divided by the processors. First to last: "
    f"{faster}.",
    f"First to last: {faster}. What goes beyond the number comes from faster processors, half precision and software.",
)

# %% [markdown]
# What it took is the syllabus of this course. Larger batches, so rate scaling and warmup (Goyal). Rates for each layer:
# LARS (You). Akiba reached the same batch of 32,768 with one rate for all layers, and a warmup that begins with
# RMSprop. Half-precision numbers, so less to compute and to send (Jia). An all-reduce that knows how the machines are
# wired, and an input pipeline that keeps up. From Goyal to the last row the batch grew about as much as the number of
# processors: each kept a batch of a similar size. How far this can go is limited by the critical batch size (notebook
# 05).
#
# These results could be repeated, for a simple reason. There is **one fixed target** on images that were not trained
# on, the batch and the processors are named, and the recipe is in the paper. A record does hide how many trials its
# rates took. But nobody has to guess what was measured.
#
# Two numbers say what the workers bring in time. The **speed-up** is the time of one worker divided by the time of
# several. The **efficiency** is the speed-up divided by the number of workers: four workers that are three times as
# fast have 75 %. What a run costs is the number of workers times the seconds. So more workers often cost more for the
# same result, and they are worth it where waiting costs more. If four workers are *more* than four times as fast, look
# for the reason before you believe it. Was the one worker slowed down, by reading its images or by too few threads? Did
# the four do less work? Or do smaller batches fit into the processor's cache?
#
# ## A published table
#
# An open bootcamp on distributed deep learning (S4 of notebook 99) teaches with five scripts that train a small ResNet
# on CIFAR-10, the network that we have been using. Its convergence notebook reports, after 12 epochs with 512 images a
# worker, the training accuracy on V100 GPUs; on A100 GPUs each row comes out within about a point of it:
#
# | what | GPUs | accuracy |
# | --- | --- | --- |
# | baseline | 1 | 71 % |
# | naive: the same script on eight GPUs | 8 | 44 % |
# | with batch normalisation | 8 | 64 % |
# | with a scaled learning rate, no warmup (in the text, not in its table) | 8 | 53 % |
# | with a scaled learning rate and warmup | 8 | 65 % |
# | with LAMB | 8 | 81 % |
#
# It tells a good story: eight GPUs ruin the accuracy, and technique after technique brings it back, until it is better
# than ever. The techniques are those of the records, and the bootcamp deserves credit for publishing its scripts with
# the numbers. That is what lets us ask: **is this what the scripts measured?**
#
# Take a minute before you read on. You have one number a row. What would you want to know?

# %% [markdown]
# ## What the scripts do
#
# Reading them line by line (you know how, from notebook 04) shows:
#
# 1. **Nobody shards.** No worker takes a part of the data. In four of the five scripts all workers also use the same
#    random seed.
# 2. **An epoch is cut short.** Each worker has all the data, but it makes only an eighth of the updates, as if it had a
#    shard. With one GPU, 12 epochs are 1,164 updates. With eight, they are 144.
# 3. **Two rows are one program.** The script of "batch normalisation" and that of "a scaled learning rate and warmup"
#    are the same file. So the former already scales its rate and warms it up.
# 4. **The rows differ by more than their names say.** The baseline has its batch normalisation commented out; the LAMB
#    row has it. The LAMB script also leaves the seed out, so its workers draw *different* images: a second change.
# 5. **The accuracy is that of training images**, as its text says, of one run on each kind of GPU. The test images are
#    loaded, and not used.
#
# None of this is rare. Notebook 05 had a list for exactly such cases. What do the first two mean together? Work it out:


# %% exercise="effective_batch"
def effective_batch(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    """How many different images the mean gradient of one update rests on."""
    ### BEGIN SOLUTION
    return batch if same_seed and not sharded else workers * batch
    ### END SOLUTION


# %% exercise="updates_made"
def updates_made(images: int, batch: int, workers: int, epochs: int) -> int:
    """Updates in so many epochs when each worker has images // workers images."""
    ### BEGIN SOLUTION
    return epochs * -(-(images // workers) // batch)  # rounded up
    ### END SOLUTION


# %%
for name, size, sharded in (("one GPU", 1, True), ("eight, as published", 8, False), ("eight, sharded", 8, True)):
    batch = effective_batch(size, 512, sharded, same_seed=True)
    updates = updates_made(50_000, 512, size, 12)
    passes = 12 * (50_000 // size) * (batch // 512) / 50_000
    print(f"{name:20} {updates:5,} updates, up to {batch:5,} images each: {passes:4.1f} passes over the data")

# %% [markdown]
# There it is. Eight GPUs "as published" did the same training as **one** GPU that stops after an eighth of its updates.
# The naive row's drop is what you get when you stop after one and a half passes. It need not have anything to do with
# several GPUs. Here are four of the eight:
#
# ![](drawings/same_images.svg)
#
# (Our scripts count the last, smaller batch of an epoch, so their updates differ from the published ones by a few.)
#
# ## The table, rebuilt
#
# To find out which factor does what, change one at a time. Each variant of an experiment is called an **arm**. Its name
# says how many workers there are, then `same` if all use the same images, then the script:
#
# | arm | workers | images | batch norm | rate | optimizer |
# | --- | --- | --- | --- | --- | --- |
# | `1-base` | 1 | | no | base | Adam |
# | `1-bn` | 1 | | yes | base | Adam |
# | `8-same-base` | 8 | the same on all | no | base | Adam |
# | `8-same-bn` | 8 | the same on all | yes | base | Adam |
# | `8-base` | 8 | shards | no | base | Adam |
# | `8-bn` | 8 | shards | yes | base | Adam |
# | `8-scaled` | 8 | shards | yes | 8 times the base rate | Adam |
# | `8-warmup` | 8 | shards | yes | warmup to 8 times the base rate | Adam |
# | `8-lamb` | 8 | shards | yes | warmup to 8 times a rate that nobody searched for | LAMB |
# | `8-lamb-0.03` | 8 | shards | yes | the best of four rates, with warmup and decay | LAMB |
#
# `8-same-scaled` and `8-same-warmup` are like `8-scaled` and `8-warmup`, with the same images on all workers. From a row
# of shards to the next one, one thing changes. The two rows of LAMB are exceptions. They also change the weight decay,
# and a good rate for Adam is not a good rate for LAMB.
#
# Everything is measured on test images, after the last epoch. All arms shift and mirror the training images, as our
# scripts do. The published scripts do not. The next cell shows runs that we have saved. Each arm of the table was run
# with five seeds, so $\pm$ is the standard deviation over five runs.
#
# **Guess first.** Eight workers train as in the published naive row: all use the same images, and they make an eighth
# of one worker's updates. By how many points are they worse on test images?

# %%
my_guess = None  # a number of points, such as 1

# %%
full = saved("C32")
compare("eight_workers", my_guess)

# %% [markdown]
# Each bar shows what one change does to the accuracy. Only the bar of LAMB has several changes: it is LAMB with a
# searched rate, and a decay. With a rate that nobody searched for, LAMB reaches only {{c32_lamb}} %, as the next table
# says.
#
# ## Published and rebuilt, side by side
#
# The next cell puts the published numbers beside ours: the arm that does what the published *script* does, and the arm
# that does what the *row's name* says.

# %%
PUBLISHED = (
    ("one GPU", "71 %", "1-base", "1-base"),
    ("naive", "44 %", "8-same-base", "8-base"),
    ("batch normalisation", "64 %", "8-same-warmup", "8-bn"),
    ("scaling", "53 %", "8-same-scaled", "8-scaled"),
    ("scaling and warmup", "65 %", "8-same-warmup", "8-warmup"),
    ("LAMB", "81 %", "", "8-lamb"),
)


def shown(arm: str) -> str:
    """Test accuracy in per cent with its deviation, or that there is no run yet, or no such arm."""
    if not arm:
        return "no arm"
    found = accuracies(full.runs, arm)
    return f"{mean_std(found, 100, 1)} (`{arm}`)" if found else f"not measured yet (`{arm}`)"


head = "| row | published: training accuracy | what the script does: test, % | what the name says: test, % |"
rows = [f"| {row} | {number} | {shown(script)} | {shown(named)} |" for row, number, script, named in PUBLISHED]
Markdown("\n".join([head, "| --- | --- | --- | --- |", *rows]))

# %% [markdown]
# Be fair when you compare the columns. The published numbers are training accuracy, from another framework and other
# hardware. That ours agree to the point is not to be expected. Ask whether the *order* of the rows, and the size of
# their steps, come back. (The workers of the published LAMB script drew different images without sharding, at Adam's
# base rate of 0.001. We have no arm for that. Our `8-lamb` does what our own script `cifar_lamb.py` does: it has
# shards, a base rate of 0.01 and weight decay 0.5.)
#
# ## Factor by factor
#
# Most lines change one thing. Those with LAMB also change the base rate and the weight decay, and two lines say that
# they put several changes together. The interval says whether the change can be told from chance. Chance comes from two
# sides. The seeds differ, and there are only 10,000 test images. If a share $p$ of $n$ images is right, the standard
# error is $\sqrt{p (1-p) / n}$: 0.4 points for 75 % of 10,000. Both arms are tested on the same images, so a part of
# this error cancels in their difference. The scatter between seeds does not cancel, so it has to be measured. A change
# is *seen* if its 95 % interval does not contain 0.

# %%
PAIRS = (
    ("workers", "1-base", "8-base"), ("shards", "8-same-base", "8-base"),
    ("batch norm, one worker", "1-base", "1-bn"), ("batch norm, eight workers", "8-base", "8-bn"),
    ("batch norm, equal batches", "8-same-base", "8-same-bn"),
    ("rate", "8-bn", "8-scaled"), ("warmup", "8-scaled", "8-warmup"),
    ("warmup, equal batches", "8-same-scaled", "8-same-warmup"),
    ("rate and warmup together", "8-bn", "8-warmup"),
    ("LAMB, its rate not searched for", "8-warmup", "8-lamb"),
    ("all of it, tuned LAMB on eight workers", "1-bn", "8-lamb-0.03"),
)  # fmt: skip


def change(before: str, after: str) -> str:
    """What changes from one arm to another, and whether it can be told from chance."""
    both = accuracies(full.runs, after), accuracies(full.runs, before)
    found = difference(*both) if all(both) else None
    return f"{found.text(100, 1)} | {'yes' if found.seen else 'no'}" if found else "not measured yet | "


# %%
head = "| factor | from | to | change of test accuracy, points | seen? |\n| --- | --- | --- | --- | --- |"
Markdown("\n".join([head, *(f"| {name} | `{one}` | `{two}` | {change(one, two)} |" for name, one, two in PAIRS)]))

# %% [markdown]
# **Batch normalisation** brings one worker {{c32_bn_one}} points, and eight workers {{c32_bn_eight}}. With the same
# images on all workers it brings {{c32_bn_same}}. There the eight act as *one* worker that stops after an eighth of the
# updates. So it is mostly the few updates that need it, and not the workers.
#
# **Scaling and warmup.** The rate times eight costs {{c32_scaled}} points, and warmup brings {{c32_warmup}} back.
# Together they change the accuracy by {{c32_both}} points ({{c32_both_interval}}), and no difference is seen. So
# warmup repairs what scaling broke. The bootcamp's own pair, 53 and 65 %, is real: with the same images on all
# workers, warmup brings {{c32_warmup_same}} points here.

# %% [markdown]
# One factor has no line of its own, since it changes together with the workers: the number of **updates**. Look at the
# same runs against epochs and against updates. Where two curves lie on each other in the right panel, the number of
# updates alone explains the difference in the left one.

# %%
curves = {
    arm: 100 * np.array([run["test_accuracy"] for run in runs]).mean(0) for arm, runs in full.runs.items() if runs
}
figure, (left, right) = panels(("epoch", "test accuracy (%)"), ("update", "test accuracy (%)"))
ends = []
for arm in [arm for arm in ("1-base", "8-same-base", "8-base", "1-bn", "8-bn") if arm in curves]:
    updates = full.runs[arm][0]["updates"]
    left.plot(range(1, len(updates) + 1), curves[arm], label=arm)
    right.plot(updates, curves[arm])
    ends.append(f"{arm} {curves[arm][-1]:.1f} % after {updates[-1]:,} updates")
if ends:
    left.legend()
    right.set_xscale("log")
    text = f"Mean test accuracy: {', '.join(ends)}."
    show(figure, f"Accuracy by epoch and by update. {text}", f"{text} The axis of the updates is logarithmic.")

# %% [markdown]
# **The drop of the naive row.** Eight workers as published end {{c32_naive}} points below one. They are one worker
# that stops after an eighth of its updates, so all of these points are the price of missing updates. Shards return
# {{c32_shards}} of them, because the gradient then rests on eight times the images.
#
# See the right panel. At the same number of updates, the line of `8-same-base` lies nearly on the line of `1-base`. The
# line of `8-base` lies higher, because of its shards.

# %% [markdown]
# The published table has training accuracy. How far is it from test accuracy? Ours is measured after training, on
# 10,000 training images without distortions; one that is counted while training goes on is usually lower.

# %%
arms = [arm for arm in ("1-base", "1-bn", "8-same-base", "8-base", "8-bn", "8-warmup", "8-lamb") if full.runs[arm]]
train = [100 * np.mean([run["train_accuracy"] for run in full.runs[arm]]) for arm in arms]
test = [100 * np.mean(accuracies(full.runs, arm)) for arm in arms]
if arms:
    (figure, ax), places = axes("", "accuracy (%)"), np.arange(len(arms))
    ax.bar(places - 0.2, train, 0.4, label="training images", color=GREY)
    ax.bar(places + 0.2, test, 0.4, label="test images", color=BLUE)
    ax.set_xticks(places, arms)
    ax.set_ylim(0, 115)
    ax.legend(loc="upper center", ncols=2)
    gaps = ", ".join(f"{arm} {a - b:+.1f}" for arm, a, b in zip(arms, train, test, strict=True))
    text = f"Training minus test accuracy, in points: {gaps}."
    show(figure, f"Pairs of bars. {text}", f"Means over the seeds, of the last epoch's network. {text}")

# %% [markdown]
# ## LAMB beside SGD, both tuned
#
# The last row of the published table is its most striking. To see what the *optimizer* does, all else has to be equal,
# and both have to be given a chance: the same eight workers, the same warmup and linear decay, four peak rates each.
# (Each keeps a weight decay of its own, which is not tuned.) Nado et al. 2021 (arXiv:2102.06356) made this comparison
# on the benchmarks by which LARS and LAMB had become known, and found that well tuned Nesterov momentum and Adam get as
# far.
#
# How much tuning is enough? SGD is here twice. `8-sgd` has a tuned rate and nothing else. `8-clipped` also has its
# gradient clipped: where the norm of the mean gradient, over all weights together, is above 1, the gradient is scaled
# down to 1 (Pascanu et al. 2012, arXiv:1211.5063; with Horovod it goes where notebook 04 says). That is one line, and
# it has a reason. LAMB's step is a share of each layer's weights, however large the gradient. SGD's is as large as the
# gradient is, and this network's are large while it is new: a rate that is right later breaks it in the first epochs.
#
# One seed chose each optimizer's rate, by its accuracy on the test images. So the choice is partly luck. Then the
# chosen rates were run with all seeds.

# %%
NAMES = {"sgd": "SGD", "clipped": "SGD, clipped", "lamb": "LAMB"}
figure, (left, right) = panels(("peak rate, SGD", "test accuracy (%)"), ("peak rate, LAMB", "test accuracy (%)"))
best = []
for ax, names in ((left, ("sgd", "clipped")), (right, ("lamb",))):
    for name in names:
        found = {rate: 100 * np.array(accuracies(full.runs, f"8-{name}-{rate}")) for rate in RATES[name]}
        found = {rate: values for rate, values in found.items() if len(values)}
        means = [values.mean() for values in found.values()]
        bars = [deviation(values) if len(values) > 1 else np.nan for values in found.values()]
        ax.errorbar(list(found), means, bars, capsize=3, label=NAMES[name])
        if values := accuracies(full.runs, CHOSEN[name]):
            best.append(f"{NAMES[name]} {mean_std(values, 100, 1)} %")
    rates = sorted({rate for name in names for rate in RATES[name]})
    ax.set_xscale("log")
    ax.set_xticks(rates, map(str, rates))
    ax.minorticks_off()
    ax.legend()
if best:
    right.sharey(left)
    left.autoscale(axis="y")  # to the points of both
    text = f"At the chosen rates: {'; '.join(best)}."
    show(
        figure, f"Accuracy against the peak rate, a line an optimizer. {text}",
        f"{text} Points with a bar: mean and deviation over the seeds; the others are the seed that chose.",
    )  # fmt: skip

# %%
sgd, clipped, lamb = (CHOSEN[name] for name in NAMES)
head = "| from | to | change of test accuracy, points | seen? |\n| --- | --- | --- | --- |"
pairs = ((sgd, lamb), (clipped, lamb), (clipped, "8-lamb"))
Markdown("\n".join([head, *(f"| `{one}` | `{two}` | {change(one, two)} |" for one, two in pairs)]))

# %% [markdown]
# Read the three lines one after the other. The first two end at the same LAMB, and the last two begin at the same SGD.
# `8-lamb` is LAMB as our script has it, with a rate that nobody searched for. With the first line alone you could write
# that LAMB is far better, with the last alone that SGD is. **Whoever tunes one optimizer and takes the other as it
# comes can prove anything.** The second line is the fairest of the three, and it is not the last word either. Nado et
# al. tuned more: momentum, the length of the warmup, weight decay, label smoothing, and for all optimizers. So we do
# not know whether more tuning would close the rest of the distance.
#
# **LAMB** as our script has it ends at {{c32_lamb}} %, below the {{c32_base}} % of eight workers with shards and no
# technique at all. Its scaled rate never falls (notebook 06). With a searched rate, warmup and decay it reaches
# {{c32_lamb_tuned}} %. SGD with the same schedule, a searched rate and clipped gradients reaches {{c32_clipped}} %.
#
# Look at the bars, too. The rate 0.05, chosen without clipping, has by far the longest. In the one run that chose it,
# it was the best of the four. Another of its five seeds ends several points lower. Choosing by one run is cheap. A mean
# over five seeds would have shown the risk, at five times the price.
#
# ## What this table shows, and what it cannot show
#
# **The end of the story.** One worker with batch normalisation reaches {{c32_bn}} %. Eight workers with tuned LAMB,
# who make an eighth of the updates, reach {{c32_lamb_tuned}} %. The difference is {{c32_end}} points
# ({{c32_end_interval}}), and no difference is seen. So a good recipe can make up for seven eighths of the updates.
# Read this with care: LAMB's rate was searched for, and it had a decay. The one worker had neither. By the list
# below, this does not show that eight workers are as good as one.
#
# What the published table **could not show**, whatever its numbers had been:
#
# - anything about images that the network had not seen;
# - whether a difference is more than chance, with one run a row on each kind of GPU;
# - what sharding does: no row has it;
# - what batch normalisation does by itself, or scaling: no row adds one of them alone, because the script that scales
#   the rate has batch normalisation, too;
# - whether LAMB is better than another optimizer that has been tuned.
#
# What remains true: updates are what training is made of. Everything that works here works by making each of the few
# updates count for more.
#
# ## What a table needs
#
# 1. One change from row to row. If two techniques may do the same job, the one that is added first gets most of the
#    gain. Then show four rows: neither, each one alone, and both.
# 2. Test images; the last epoch, not the best one. The best of many epochs is partly luck.
# 3. Several seeds, mean *and* spread, and how many.
# 4. The number of updates and the global batch, not only epochs and GPUs.
# 5. A tuned baseline: as much tuning for the old as for the new.
# 6. The command that repeats it.
#
# ## Summary
#
# - Eight workers that average equal gradients are one worker. The loss falls, and nothing warns you.
# - The published drop from one GPU to eight is the price of fewer updates. With shards, a part of it comes back.
# - Two rows of the table came from one program: their difference is noise.
# - To change one factor at a time, with several seeds, is slow. But it tells which factor does what.
#
# The lines to keep:
#
# ```python
# difference = mean(a) - mean(b)  # over several seeds, on test images, at the last epoch
# error = (variance(a) / len(a) + variance(b) / len(b)) ** 0.5  # of the difference
# speed_up = seconds_of_one / seconds_of_several
# efficiency = speed_up / workers
# ```
#
# ## Questions
#
# <details><summary>Two rows of the table, 64 and 65 %, are runs of the same program. What do they tell you?</summary>
#
# Less than one would like. A difference of a point can come from chance alone, and rounding can make most of it. Both
# runs have the same seed, so they differ only by what a GPU does not repeat exactly. Other seeds would differ more; how
# much, one pair does not tell. So no difference of about a point in this table means anything, and larger ones need
# more seeds.
#
# </details>
#
# <details><summary>You are given a script whose workers all use one seed and do not shard. How do you notice from its
# output alone?</summary>
#
# The workers' losses, before they are averaged, agree to many digits. (Rounding may differ in the last ones.) And with
# more workers nothing changes but the number of updates.
#
# </details>
#
# <details><summary>Why is it not enough to use different seeds, without sharding?</summary>
#
# Each worker then draws its own shuffle of all images. The gradient rests on different images, so averaging helps; but
# in an epoch some images are used several times and others not at all (the lab of lesson 03 measures how many).
#
# </details>
