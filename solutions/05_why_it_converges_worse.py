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
# # 05 Why it converges worse
#
# **After this notebook you will be able to** say why several workers may end at a lower accuracy than one, and find the
# cause in a program of your own. You will also be able to write a learning-rate schedule that means the same for every
# number of workers, and to judge how far a rate can be scaled.
#
# **Time:** about {{minutes_05}} minutes, and no waiting: all runs of this notebook are saved. **Builds on:** 01 (noise,
# critical batch size), 03 (averaging gradients, shards) and 04 (Horovod).
#
# The course began with numbers of this kind. One GPU reached 86 % on CIFAR-10. Two GPUs reached 84 % in half the time.
# Somebody concluded that averaging gradients costs accuracy. Many people ask the same question: *why is my accuracy
# lower now?* Notebook 03 said when the mean of the workers' gradients is that of one large batch: with equal counts,
# and without batch normalisation over each worker's own images. Can the accuracy be lower even then?

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from cifar.data import shard, shuffle
from lessons import compare, saved

# %% [markdown]
# ## "My accuracy is lower now"
#
# We did the same with a small network. One worker reaches {{c04_one}} %. Four workers, each with a GPU of its own,
# would need only a quarter of the time. But their network is worse. What went wrong?
#
# **Guess first.** Who did it? Choose one of these four. And how many percentage points lower is the accuracy? Write
# this number into the next cell.
#
# - (a) Averaging the gradients loses information.
# - (b) The workers see the wrong images.
# - (c) The network has made too few updates.
# - (d) It is bad luck.

# %%
my_guess = None  # a number of points, such as 10

# %% [markdown]
# ### Updates and epochs
#
# A step of training is called an **update**: the weights change once. An **epoch** is one pass over all images, here
# {{c04_images}}. One worker uses {{c04_batch}} images in an update, so its epoch takes {{c04_epoch_one}} updates. Four
# workers use 4 × {{c04_batch}} = {{c04_global}}, so their epoch takes only {{c04_epoch_four}}.
#
# ![](drawings/steps.svg)
#
# We train for {{c04_epochs}} epochs. Both runs see every image {{c04_epochs}} times. But one changes its weights
# {{c04_updates_one}} times, and the other {{c04_updates_four}} times. In general, $K$ workers with $b$ images each use
# $Kb$ images in an update. This is the global batch. An epoch of $N$ images takes $N / (Kb)$ updates.
#
# ### The experiment
#
# Four workers train twice. First they stop when they have used as many images as one worker. Then they train four times
# as long, so that they make {{c04_updates_one}} updates, too. In every run the learning rate (from now on: the *rate*)
# falls evenly to zero.

# %%
from lessons import show_solution, verdict

show_solution()
compare("four_workers", my_guess)
verdict()

# %% [markdown]
# The answer is (c): too few updates. Here are the runs in one place:
#
# | | updates | passes over the images | test accuracy |
# | --- | --: | --: | --: |
# | one worker | {{c04_updates_one}} | {{c04_epochs}} | {{c04_one}} % |
# | four workers, equal images | {{c04_updates_four}} | {{c04_epochs}} | {{c04_four}} % |
# | four workers, equal updates | {{c04_updates_one}} | {{c04_epochs_four}} | {{c04_four_updates}} % |
# | one worker, four times as long | {{c04_updates_longer}} | {{c04_epochs_four}} | {{c04_longer}} % |
#
# **Be the judge.** Which row speaks against (a)? And what speaks against (b) and (d)?
#
# <details><summary>Compare your answers</summary>
#
# - Against (a): the third row. **With equal updates, the four workers reach {{c04_four_updates}} %.** That is
#   {{c04_gain}} points *more* than one worker reaches (95 % interval, the range in which the true difference probably
#   lies: {{c04_gain_interval}}). So the averaging did no harm.
# - Each worker had its own shard, so it is not (b).
# - All seeds agree, so it is not (d).
#
# </details>
#
# Is that fair? With equal updates, the four workers have seen four times as many images. So look at the last row. There
# **one** worker sees every image as often as they do, and ends {{c04_longer_gain}} points above them (95 % interval:
# {{c04_longer_interval}}). So four workers are not needed for such a result.
#
# <details><summary>Where does the four workers' gain come from?</summary>
#
# They pass over the images more often, and their gradients have less noise. These runs do not tell how much of the four
# workers' gain comes from the passes, and how much from the lower noise.
#
# </details>
#
# ### Was it a bad purchase?
#
# Look at the clock. Suppose that averaging costs no time. Then one worker makes {{c04_updates_four}} updates while four
# workers make {{c04_updates_four}}. **Guess:** which of them is farther by then? The figure has all comparisons, also
# with two workers. Look at the last group, *equal time, 4*.

# %%
saved_c04 = saved("C04", verdict=False)

# %% [markdown]
# One worker with {{c04_updates_four}} updates has seen a quarter as many images. It reaches {{c04_one_quarter}} %. Four
# workers reach {{c04_four}} %.
#
# > **Takeaway.** In the same *time*, four workers are {{c04_time}} points ahead ({{c04_time_interval}}). In the same
# > *epochs*, they are {{c04_loss}} points behind ({{c04_loss_interval}}), because they make a quarter of the updates.
# > The rest of this course is about how each update can count for more.
#
# There are three ways out. Train longer, and pay with images. Or give each worker a smaller batch, $b/K$. Together the
# workers then compute what one worker computes (notebook 03; batch normalisation aside). Or let every update go
# further, with a higher rate. The rest of this notebook asks how high the rate may be. Notebook 06 continues.
#
# <details><summary>When does this not hold?</summary>
#
# With two workers no difference was seen at equal epochs. A difference may exist, but it is smaller than the spread of
# these runs. (The two GPUs of the story had another network and other settings.) With a constant rate, the runs differ
# more from seed to seed. The folded part below the figure has the numbers.
#
# </details>
#
# <details><summary>How was this measured?</summary>
#
# One process computes the part of each worker in turn. Each worker has its own random numbers and batch statistics.
# Then the process makes one update with the mean gradient. A test compares this with real workers. In the lab (notebook
# 15) you train with real workers yourself.
#
# </details>
#
# ## Each image counts less
#
# Fewer updates are the reason. Can a higher rate make up for them? Look at one image. An update subtracts the rate
# $\eta$ times the mean of $Kb$ gradients. So the gradient of each image is multiplied by $\eta / (Kb)$, once in an
# epoch. Keep the rate and double the workers. What happens to this factor? It is halved: each image counts half as
# much.
#
# ## Should the rate change with the number of GPUs?
#
# Each image counts $K$ times less at a fixed rate. The obvious repair is to multiply the rate by $K$. This is the
# **linear scaling rule** (Krizhevsky 2014, arXiv:1404.5997; Goyal et al. 2017, arXiv:1706.02677). Compare $K$ small
# updates with one that is $K$ times as long. Both end in nearly the same place, if the gradient changes little on the
# way.
#
# Can this go on for ever? The next experiment searches the best rate for 1 to 32 workers with 8 images each. The
# network is the small one of notebook 01, without batch normalisation. It trains for 3 epochs of 8,192 images, with
# five seeds.
#
# **Guess first.** From 1 to 8 workers, the batch grows 8 times. How many times does the best rate grow? From 8 to 32
# workers, the batch grows 4 times. And the best rate?
#
# **What to look at:** on the left, the lowest point of each curve, and how it moves. On the right, the straight line is
# the linear rule. Where do the best rates leave it? (The dashed curve is a formula of the next section.)

# %%
my_guess = None  # how many times the best rate grows from 1 to 8 workers

# %%
result = saved("C20", verdict=False)
compare("best_rate", my_guess)

# %% [markdown]
# The best rate first grows with the batch. Then it leaves the line. From 1 to 8 workers it grows about {{c20_early}}
# times. From 8 to 32 workers it grows only {{c20_late}} times.
#
# Look at the lowest points of the curves. Even at their best rate, 32 workers end at a loss of {{c20_loss_many}}. One
# worker ends at {{c20_loss_one}}. All have seen the same images equally often. A better rate makes up for some of the
# missing updates, and not for all.
#
# ### Why the best rate stops growing
#
# Think of a valley. The steps go downhill, and the rate says how long they are. In the left panel below, one step
# begins at the right side. With a low rate it ends half-way. With the best rate it ends at the bottom. With more than
# twice the best rate it ends on the other side, higher than it began. So there is a best rate even without noise.
#
# A gradient of few images is noisy. So a step has two parts: one goes downhill, and one is noise, in any direction. A
# longer step makes both longer. **Guess:** does noise make the best rate higher, or lower?

# %%
from lessons.cells.plots.valley import show_valley

show_valley()

# %% [markdown]
# It is lower, and it depends on the batch. The right panel shows how far a noisy step ends from the bottom. The dots
# are the lowest points. With more images in a batch there is less noise, so a longer step is best.
#
# How much noise is too much? Notebook 01 had a measure: the noise scale. It is the number of images in a batch whose
# noise is as large as its gradient. Smaller batches are mostly noise, and larger ones mostly gradient. In the figure
# the noise scale is 64 images:
#
# | the batch grows | the best rate grows | why |
# | --- | --- | --- |
# | from 1 to 2 images | 1.97 times | a batch is nearly all noise, and the variance of this noise is now half as large |
# | from 64 to 128 | 1.33 times | half of it was noise |
# | from 640 to 1,280 | 1.05 times | there was hardly any noise left |
#
# Far below the noise scale, twice the batch allows almost twice the rate. This is the linear rule. Far above it, the
# rate hardly grows. Between them, at the noise scale, is the **bend**.
#
# **Guess:** the batch grows from 32 images to 512, which is 16 times as many. Does the best rate grow 16 times, 8
# times, or less than 4 times?
#
# <details><summary>Compare your guess</summary>
#
# 2.7 times. Most of the way lies beyond the bend. (From 1 image to 16, it would grow 13 times.)
#
# </details>
#
# <details><summary>Which formula is this, and where does it come from?</summary>
#
# Let $\mathcal B$ be the noise scale, and $\eta_{\max}$ the best rate without noise. Then the best rate for a batch of
# $B$ images is $\eta_{\max} / (1 + \mathcal B / B)$.
#
# Let the loss be $\frac12 h x^2$ at the distance $x$ from the bottom. The larger the curvature $h$ is, the steeper are
# the sides. The gradient is $h x$, so a step goes from $x$ to $x - \eta h x$. It multiplies the distance by
# $1 - \eta h$. With the rate $1/h$, it ends exactly at the bottom, so $\eta_{\max} = 1/h$. With a rate above $2/h$,
# each step lands farther away.
#
# Let $\sigma^2$ be the variance of one image's gradient. In a batch it is $\sigma^2 / B$ (notebook 01), and a step
# multiplies it by $\eta^2$. The noise is 0 in the mean, so the two parts of the mean squared distance simply add up:
#
# $$ (1 - \eta h)^2 x^2 + \eta^2 \sigma^2 / B. $$
#
# The first part is smallest at the rate $1/h$, and the second part at 0. Set the derivative to 0:
# $-2 h (1 - \eta h) x^2 + 2 \eta \sigma^2 / B = 0$. Solve this for $\eta$:
#
# $$ \eta(B) = \frac{h x^2}{h^2 x^2 + \sigma^2 / B} = \frac{\eta_{\max}}{1 + \mathcal B / B}, \qquad
# \mathcal B = \frac{\sigma^2}{(h x)^2}. $$
#
# So $\mathcal B$ is the variance of one image's gradient, divided by the squared gradient. (A network has many
# directions. The steepest one decides which rates are too high. Some networks are steep at the start, and low rates
# lead them to a less steep place. Notebook 06 begins with low rates.)
#
# </details>
#
# ### Where is the bend?
#
# By the theory, the bend is also the critical batch size of notebook 01, beyond which more images hardly improve an
# update (McCandlish et al. 2018, arXiv:1812.06162). For this network and plain SGD we have three rough estimates:
#
# | from | images |
# | --- | --: |
# | the best rates of 1 to 32 workers, above | {{c20_critical}} |
# | the critical batch size, notebook 01 | {{c28_critical}} |
# | the noise scale, notebook 01 | {{c28_noise}} |
#
# So the bend lies at some tens to a hundred images, and not at a thousand. (The theory is about one step, and our
# experiment is about whole runs. So expect the same shape, and not the same numbers. We have not run this search with
# batch normalisation.)
#
# For other networks and data the bend lies elsewhere. In one large study, the critical batch sizes of different
# problems differed by factors of ten and more (Shallue et al. 2018, arXiv:1811.03600). So no number of GPUs is right
# for all problems.
#
# So take a rule as the place where your search begins. And scale *once*: some launchers and libraries already multiply
# the rate for you.
#
# <details><summary>Does the same rule hold for Adam?</summary>
#
# No. For Adam, multiply the rate by $\sqrt K$ for $K$ times the batch. And its critical batch is larger (Zhang and
# others 2019, arXiv:1907.04164). Why the square root? A run with four times the batch has only a quarter of the
# updates. So each update should go four times as far. Adam divides each step by the usual size of the gradient. Suppose
# this size is mostly noise. The noise of a mean falls with the square root of the batch. So with four times the batch,
# the size is half as large, and at the same rate Adam already goes twice as far in the direction of the true gradient.
# We need four times as far, so we also double the rate. Two is the square root of four. The rule stops working where
# there is little noise. (Malladi et al. 2022, arXiv:2205.10287, derive this, and they change more than the rate.)
#
# The scripts of notebook 06 multiply Adam's rate by $K$, which is bolder. Notebook 06 tests this, with and without
# **warmup**, in which the rate climbs slowly at the start.
#
# </details>
#
# <details><summary>Do large batches end in sharp minima?</summary>
#
# You may read another explanation. Large batches end in **sharp** minima, where the loss rises steeply when the weights
# move a little. Such networks are said to do worse on new images (Keskar et al. 2016, arXiv:1609.04836). We tested this
# on images without distortions. The large batch does end in a sharper place. With equal updates, most of the sharpness
# goes away. But the accuracy does not come back. So our experiment does not show that sharpness is the reason. The
# figure and its warnings are in the lab (notebook 15).
#
# </details>
#
# You now know why fewer updates cost accuracy, and what a rate can do about it. This is a good place for a pause.
#
# Three other causes look the same from outside: the workers have the same images, the rate falls at the wrong time, or
# the difference is chance. The rest of this notebook takes them one by one, and then you are the doctor.
#
# ## "Is every GPU seeing the same data?"
#
# The first mistake: every worker trains on the same images. Four workers take 64 images each. How many different images
# are in one update, with shards and without? Guess, and run the cell.

# %%
batch = 64
order = shuffle(images, seed, epoch=0)
sharded = [set(shard(order, rank, workers)[:batch].tolist()) for rank in range(workers)]
copied = [set(order[:batch].tolist()) for rank in range(workers)]
for name, parts in (("shards of one shuffle", sharded), ("no sharding, equal seeds", copied)):
    print(f"{name:25} {len(set.union(*parts)):4} different images in an update of {workers} workers")

# %% [markdown]
# Without shards, all gradients are equal. So their mean is any one of them, and $K$ workers do the work of one. Two
# tests find this in any program:
#
# - Print the first ten indices on each rank, once. If two ranks print the same, there is no sharding.
# - Compare the losses of the workers *before* they are averaged. If they agree to the last digit, the images are the
#   same.
#
# The second test can miss the mistake. If each worker distorts the images in its own way, the losses differ a little.
# Then use the first test. In notebook 07 this mistake turns up in a published table.
#
# Print the indices in two epochs, too. If they are the same, the program does not shuffle anew, and each worker has the
# same images in the same order in every epoch. So the seed must contain the epoch. And it must be the same on all
# workers. If each worker shuffles in its own way, some images are used twice in an epoch, and others not at all.
#
# ## The schedule that came four times too late
#
# Most programs let the rate fall during training. The plan for this is called a schedule. An example: divide the rate
# by 10 after 10 epochs. But a program counts updates. Take all 50,000 images, and 64 in an update. For one worker, an
# epoch has 782 updates, and 10 epochs have 7,820. So somebody wrote `if update == 7820`. Now four workers run this
# program. In which epoch does the rate fall? In the fortieth, if there is one.
#
# Smooth schedules suffer from this, too. A **cosine** schedule multiplies the rate by
# `(1 + math.cos(math.pi * s)) / 2`, where `s` is the part of the run that is done. It begins with 1, and ends with 0.
# If `s` is counted with one worker's updates, a run with four workers ends at `s = 1/4`. There the rate is still 85 %
# of the first one. So the calm end of the run, with low rates and little noise, never comes.
#
# So write schedules in epochs. Then one worker and four have the same schedule, and it cannot be the cause of a
# difference. Let the program compute the updates from the global batch.

# %% exercise="rate_at"
from math import ceil


def rate_at(update: int, images: int, batch: int, workers: int, rate: float, decay_epochs: list[int]) -> float:
    """The rate at an update, divided by 10 at the beginning of each epoch in decay_epochs."""
    ### BEGIN SOLUTION
    updates_an_epoch = ceil(images / (batch * workers))
    epoch = update // updates_an_epoch
    return rate / 10 ** sum(epoch >= decay for decay in decay_epochs)
    ### END SOLUTION


# %% [markdown]
# Your function for 1 and 4 workers:

# %%
for size in (1, 4):
    rates = [rate_at(update, 50_000, 64, size, 0.1 * size, [2, 4]) for update in range(6 * 782 // size)]
    changes = [update for update in range(1, len(rates)) if rates[update] < rates[update - 1]]
    print(f"{size} worker(s): the rate falls at updates {changes}")

# %% [markdown]
# Does it matter for accuracy? We ran four workers with both schedules, from the **base rate**, which is the rate of one
# worker. **Guess:** which schedule ended higher, the right one or the late one?
#
# <details><summary>Compare your guess</summary>
#
# From the base rate, **the late schedule ended higher**, by {{c06_base}} points. Four workers make a
# quarter of the updates, and a rate that stays high for longer makes up for some of them, by accident. (The lab,
# notebook 15, shows these runs, and what happened from the scaled rate.)
#
# </details>
#
# So write schedules in epochs all the same. You do not do this for a higher number, but for a fair comparison. In these
# runs, one mistake hid another: the decay came too late, and nobody had searched for the rate.
#
# ## Lower, or only unlucky?
#
# One cause is left: bad luck. An **arm** of an experiment is one kind of run, repeated with several seeds. Accuracies
# jump from seed to seed. So compare a difference of means with its **standard error**,
# $\sqrt{s_a^2/n_a + s_b^2/n_b}$. Here $s^2$ is the variance over the seeds, and $n$ is the number of runs. Up to two
# standard errors, we see no difference.

# %% exercise="compare_arms"
from statistics import mean, variance


def compare_arms(a: list[float], b: list[float]) -> str:
    """What the accuracies of two arms over seeds show: which is higher, or why none is."""
    ### BEGIN SOLUTION
    if min(len(a), len(b)) < 2:
        return "too few runs"
    error = (variance(a) / len(a) + variance(b) / len(b)) ** 0.5
    difference = mean(a) - mean(b)
    if abs(difference) <= 2 * error:
        return "no difference seen"
    return "a is higher" if difference > 0 else "b is higher"
    ### END SOLUTION


# %% [markdown]
# Your function judges the first experiment. One worker is `a`, and several are `b`. Which two of the answers together
# show that too few updates were the cause?

# %%
found = saved_c04.runs
if saved_c04.seeds > 1:
    for size in (2, 4):
        words = {
            equal: compare_arms(c04.last(found, "falling-1"), c04.ends(found, "falling", size, equal))
            for equal in ("epochs", "updates")
        }
        print(f"{size} workers: at equal epochs {words['epochs']}; at equal updates {words['updates']}")
else:
    print("only one seed has been saved so far, and one run of an arm has no spread")

# %% [markdown]
# The two answers for four workers: at equal epochs they end lower, and at equal updates higher. So with enough updates,
# the averaging did no harm.
#
# Your rule is made for many seeds. With only five, it says "higher" a little too easily. The 95 % intervals of this
# notebook are more exact. If the two disagree, believe the intervals.
#
# ## Six patients
#
# Now find the cause yourself. This is a made-up problem with 50,000 images, and a network of its own.
#
# - The healthy program runs on four workers with 64 images each. It runs for 8 epochs, counted from 0.
# - Its rate is 0.4, and it falls to 0.04 in epoch 4. (One worker trained at 0.1. Nobody has searched for the best rate
#   of one worker.)
# - A search has tried other rates, for 256 images in an update and for 1,024. The best rate is 0.4 for both, because
#   both batches lie far above the bend of this problem.
# - All six patients end lower than the healthy program.
#
# This is what they print:
#
# | | first images of workers 0 and 1 | images each | rate in epochs 0, 4 and 7 | runs |
# | --- | --- | --- | --- | --- |
# | a healthy program | 4181, 902, 17 and 23, 511, 7300 | 64 | 0.4, 0.04, 0.04 | 5 seeds |
# | patient A | 4181, 902, 17 and 4181, 902, 17 | 64 | 0.4, 0.04, 0.04 | 5 seeds |
# | patient B | 4181, 902, 17 and 23, 511, 7300 | 64 | 0.4, 0.4, 0.4 | 5 seeds |
# | patient C | 4181, 902, 17 and 23, 511, 7300 | 256 | 0.4, 0.04, 0.04 | 5 seeds |
# | patient D | 4181, 902, 17 and 23, 511, 7300 | 64 | 1.6, 0.16, 0.16 | 5 seeds |
# | patient E | 4181, 902, 17 and 23, 511, 7300 | 64 | 0.4, 0.04, 0.04 | 1 seed, 0.4 points lower |
# | patient F | 4181, 902, 17 and 23, 511, 7300 | 64 | 0.1, 0.1, 0.1 | 5 seeds |
#
# Find the causes. There are five:
#
# - `"images"`: the workers have the same images.
# - `"updates"`: the program makes fewer updates than the healthy one.
# - `"schedule"`: the rate does not fall when it should.
# - `"rate"`: it does not begin with the best rate.
# - `"luck"`: a difference so small can be chance.
#
# An example: a program prints the rates 0.4, 0.4 and 0.04, and all else as the healthy one. Its rate does not fall in
# epoch 4, so its cause is `"schedule"`.
#
# One patient has two causes. Write them into the calls: `treat("A", ["luck"])`, or `treat("A", ["images", "rate"])`.

# %%
from lessons.cells.tasks.patients import treat

treat("A")
treat("B")
treat("C")
treat("D")
treat("E")
treat("F")

# %% [markdown]
# For a network of your own, you must search for the rate: a scaled rate can also be too high. And in our runs a late
# decay helped. Whether it harms your program must be tested.
#
# ## When your multi-GPU accuracy is lower: a list to go through
#
# The first checks take seconds. They come first, because the later ones mean nothing while such a mistake is there.
#
# 1. Print the first images of each worker. They must differ. Together the workers must see all images (notebook 03).
# 2. Check that all workers start with the same weights and stay equal (notebook 04). Then give all workers the same
#    images. If the exchanged gradient is $K$ times the local one, the program adds up and does not average.
# 3. Count the updates. If there are fewer than before, compare once at equal updates. (Or let one worker train with the
#    global batch: if it ends as low, the averaging is not the cause.) If the accuracy is then as high
#    as before, fewer updates were the cause. If not, go on with this list.
# 4. Write the schedule in epochs, warmup included. Print the rate. A step down in the rate shows in the training loss,
#    which then suddenly falls.
# 5. Scale the rate once: by $K$ for SGD, by about $\sqrt K$ for Adam. Then search near it. The scaled rate can be far
#    too high. (If the best rate is the highest or the lowest that you tried, search on. And a program that sums
#    gradients, in place of averaging, has multiplied the rate by $K$ already.) Add warmup (notebook 06).
# 6. Compare your global batch with the critical batch size of your problem and your optimizer. Far beyond it, do not
#    expect that a rate brings the accuracy back in the same epochs. Use a smaller batch, or train longer.
# 7. Does the network contain batch normalisation? It computes means over the images of each worker alone. Means of two
#    or three images are noisy, which can lower the accuracy. Notebook 06 says from how many images on we saw no
#    difference.
# 8. Use several seeds, the last epoch, and test images. Up to two standard errors, you have not seen a difference.
#
# ## Summary
#
# - $K$ workers with the same per-worker batch make $1/K$ of the updates in an epoch. The test at equal updates shows
#   whether this is the cause.
# - A schedule in epochs means the same for every number of workers.
# - At a fixed rate, each image counts $K$ times less.
# - The best rate grows with the global batch, and levels off near the critical batch size.
#
# The lines to keep:
#
# ```python
# updates_per_epoch = math.ceil(images / (batch * hvd.size()))
# epoch = update // updates_per_epoch  # counted from 0: a schedule counts these
# rate = base_rate * hvd.size()  # for SGD, once: the place where a search begins
# ```
#
# ## Questions
#
# <details><summary>Question 1: with the same per-worker batch, eight workers reach your target accuracy after as
# many updates as one worker did. How much time have you saved?</summary>
#
# None. An update takes each worker as long as before, plus the exchange. You have used eight times the images for it.
# You save time only if you need *fewer* updates. A higher rate makes this possible, below the critical batch size.
#
# </details>
#
# <details><summary>Question 2: a colleague moves the decay of her run on four GPUs from epoch 30 to epoch 60, and
# it gets better. She concludes that four GPUs need a later decay. What else could it be?</summary>
#
# Perhaps the rate was too low from the start. Then a later decay makes up for it. Scale the rate first, with warmup,
# and then compare both schedules again, over several seeds.
#
# </details>
