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
# **After this notebook you will be able to** say why a network that several workers trained ends at a lower accuracy,
# find out in a program of your own which of several causes it is, write a learning-rate schedule that does not change
# its meaning with the number of workers, and judge how far a rate can be scaled.
#
# **Time:** about {{minutes_05}} minutes, and no waiting: all runs of this notebook are saved. **Builds on:** 01 (noise,
# critical batch size), 03 (averaging gradients, shards) and 04 (Horovod).
#
# In the last two notebooks, four workers computed exactly what one worker with a four times larger batch would compute.
# (Batch normalisation is an exception, because each worker has statistics of its own.) Nothing is lost on the way. And
# yet many people ask the same question about training on several GPUs: *why is my accuracy lower now?*

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from cifar.data import shard, shuffle
from lessons import compare, saved

# %% [markdown]
# ## "My accuracy is lower now"
#
# The course began with numbers of this kind. One GPU reached 86 % on CIFAR-10. Two reached 84 % in half the time, and
# somebody concluded that averaging gradients costs accuracy.
#
# We did the same with a small network. One worker reaches {{c04_one}} %. Four workers, each with a GPU of its own,
# would need only a quarter of the time. But their network is worse. It is worse with other seeds, too. What went wrong?
#
# **Guess first.** Who did it? Choose one of these four. And by how many points (per cent of the test images) is the
# network worse? Write this number into the next cell.
#
# - (a) Averaging the gradients loses information.
# - (b) The workers see the wrong images.
# - (c) The network has made too few steps.
# - (d) It is bad luck.

# %%
my_guess = None  # a number of points, such as 10

# %% [markdown]
# ### Steps and epochs
#
# A step of training is called an **update**: the workers compute their gradients, average them, and change the weights
# once. An **epoch** is one pass over all images.
#
# One worker uses {{c04_batch}} images in an update. There are {{c04_images}} images, so an epoch takes
# {{c04_epoch_one}} updates. Four workers use 4 × {{c04_batch}} = {{c04_global}} images in an update. So their epoch
# takes only {{c04_epoch_four}}.
#
# ![](drawings/steps.svg)
#
# We train for {{c04_epochs}} epochs, so both runs have seen every image {{c04_epochs}} times. But one has changed its
# weights {{c04_updates_one}} times, and the other {{c04_updates_four}} times. In general, $K$ workers with $b$ images
# each use $Kb$ images in an update, and $N$ images are used up after $N / (Kb)$ updates.
#
# ### The experiment
#
# Four workers train twice. The first time they stop after as many images as one worker has used. The second time they
# train four times as long, so that they make {{c04_updates_one}} updates, too. In each run the rate falls along a
# straight line, and is zero at the end.

# %%
saved_c04 = saved("C04", verdict=False)
compare("four_workers", my_guess)

# %% [markdown]
# The answer is (c): too few steps. After as many images, the four workers reach {{c04_four}} %. **With equal steps,
# they reach {{c04_four_updates}} %.** That is {{c04_gain}} points *more* than one worker reaches (95 % interval:
# {{c04_gain_interval}}). So averaging (a) is not to blame. Each worker had a shard of its own, so the images (b) are
# right. And all seeds agree, so it is not bad luck (d).
#
# At equal steps, more images in each step are better here. There can be two reasons, and this experiment does not tell
# them apart. A gradient of more images has less noise. And the four workers have seen every image four times as often,
# each time shifted and mirrored in another way. Notebook 03 has the other test: if four workers *share* the batch of
# one, they make as many steps on as many images, and compute the same.
#
# ### Was it a bad purchase?
#
# Look at the clock. Suppose the exchange costs nothing. Then {{c04_updates_four}} updates take four workers as long as
# they take one worker. In that time, *one* worker has seen only a quarter of its images, and it reaches
# {{c04_one_quarter}} %. Four workers reach {{c04_four}} %.
#
# > **Takeaway.** With four workers, you are {{c04_time}} points ahead in the same time ({{c04_time_interval}}). You are
# > {{c04_loss}} points behind for the same images ({{c04_loss_interval}}), because there are a quarter of the steps.
# > The rest of this course is about how each step can count for more.
#
# ### When this does not hold
#
# With two workers no difference was seen at equal epochs. If there is one, it is smaller than the spread of these runs.
# (The two GPUs of the story had lost two points, with another network and another recipe. They, too, had made half as
# many updates as the one.)
#
# We did the same with a constant rate. There, runs differ more from seed to seed, because the noise shakes the weights
# until the end. (The folded part below the figure has the numbers.) With a rate that falls to zero, as in most recipes,
# the last steps are tiny, and all runs come to rest.
#
# How was this measured? Accuracies do not depend on who waits for whom. So one process computes what $K$ workers would
# compute: each worker's part in turn, with its own random numbers and batch statistics, and then one update with the
# mean gradient. A test compares this with real workers. The lab of this lesson (notebook 15) lets you train with one
# and with four real workers, and compare them in the same two ways.
#
# Three ways lead out. Train longer, as above, and pay with images. Or divide the per-worker batch by $K$, which gives
# the run of one worker (notebook 03; batch normalisation aside). Or let every step go further, with a rate that is
# multiplied, that climbs slowly at the start, and that is perhaps different for each layer. Notebook 06 is about this
# third way.
#
# ### Lower, or only unlucky?
#
# Accuracies jump from seed to seed. Before you say "lower", compare the difference with its own uncertainty.

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
# Your function judges the saved runs whose rate falls: `a` is one worker, `b` are several.

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
# The course judges a little differently. The intervals in the folded part below the figure pair the runs of equal
# seeds, which takes out what these runs have in common. And it takes the exact factor for the 95 % interval, which for
# five pairs is 2.8 standard errors. Yours takes two, a rule of thumb for many seeds. So with few seeds yours calls a
# difference "higher" more readily. Near the border believe the intervals.
#
# ## "Is every GPU seeing the same data?"
#
# Another cause of a lower accuracy looks just the same from outside, and is a mistake: every worker trains on the
# same images. Then all gradients are equal, their mean is any one of them, and $K$ workers do the work of one, $K$
# times. Look at the indices that the workers use for one update:

# %%
batch = 64
order = shuffle(images, seed, epoch=0)
sharded = [set(shard(order, rank, workers)[:batch].tolist()) for rank in range(workers)]
copied = [set(order[:batch].tolist()) for rank in range(workers)]
for name, parts in (("shards of one shuffle", sharded), ("no sharding, equal seeds", copied)):
    print(f"{name:25} {len(set.union(*parts)):4} different images in an update of {workers} workers")

# %% [markdown]
# How to find out in a program that is not yours:
#
# - Print the first ten indices (or a checksum of the first batch) on each rank, once. Equal on two ranks: no
#   sharding.
# - Compare the workers' *local* losses before they are averaged. Different images give different losses; losses that
#   agree to the last digit come from the same images.
# - Mind random distortions: with equal images but different seeds for the distortions the losses differ a little, and
#   the second test does not notice. The first one does.
#
# In notebook 07 this mistake turns up in a published table.
#
# ## The schedule that came four times too late
#
# Most recipes let the rate fall during training: halve it after so many epochs, say. A program counts updates. Someone
# once worked out that 10 epochs are 3,910 updates of 128 images, and wrote `if update == 3910`. Now four workers make a
# quarter of the updates an epoch. Update 3,910 comes in the fortieth epoch, if it comes at all.
#
# So the rule is: write schedules in epochs, and let the program work out the updates from the size of the *global*
# batch.

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
# Your function for 1 and 4 workers. Both schedules decay in the same epochs, at different updates:

# %%
for size in (1, 4):
    rates = [rate_at(update, 50_000, 64, size, 0.1 * size, [2, 4]) for update in range(6 * 782 // size)]
    changes = [update for update in range(1, len(rates)) if rates[update] < rates[update - 1]]
    print(f"{size} worker(s): the rate falls at updates {changes}")

# %% [markdown]
# Does it matter for accuracy? People claim that the accuracy is higher if the schedule is keyed by epoch. The
# experiment trains the small ResNet by four workers with 64 images each, for 6 epochs of 10,240 images, with five
# seeds. Its schedule halves the rate every epoch. Once it is keyed by epoch, and once by one worker's updates. Nothing
# else changes. We run both schedules twice: from the **base rate**, which is that of one worker, and from four times
# that rate. (The next section says why one might scale a rate like this.)
#
# **What to look at:** on the left the rates that the runs really used: the stairs of "by step" are four times as wide.
# On the right, for each starting rate, which of the two ends higher. Compare both with the line of one worker, too.
# Guess before you look: is a rate that stays high too long always bad?

# %%
result = saved("C06", verdict=False)
# %% [markdown]
# The left panel is arithmetic: keyed by step, the rate stays high four times as long. The right panel is a surprise.
# **Keyed by step, the four workers end higher**: by {{c06_base}} points from the base rate, and by {{c06_scaled}}
# points from the scaled one. So the claim that a schedule by epoch gives a higher accuracy is false here.
#
# So was the exercise wrong? No. Look at the line of one worker, at {{c06_one}} %. From the base rate and keyed by step,
# four workers reach nearly the same, {{c06_by_step}} %. (This is another schedule than in the first experiment of this
# notebook, so one worker ends at another accuracy.) From the scaled rate, both schedules end far below it: that rate
# was too high from the first update on, whatever came later. From the base rate, four workers make a quarter of the
# updates, and a rate that stays high for longer makes up for this, by accident.
#
# So write schedules in epochs all the same. It promises no higher number. But then one worker and four have the same
# schedule, and the schedule cannot be the cause of a difference. Otherwise four workers may reach one worker's accuracy
# by two mistakes that cancel: a rate that nobody searched for, and a decay that comes too late.
#
# A falling rate makes the last updates less noisy. A larger batch does so too, and within limits the two can be
# exchanged for each other (Smith et al. 2017, arXiv:1711.00489).
#
# ## Each image counts less
#
# Fewer steps are the reason. How much do they cost, and by how much would a higher rate make up for it? Look at what
# one image does to the weights. An update subtracts the rate $\eta$ times the mean of $Kb$ gradients. So each image's
# own gradient enters with the weight $\eta / (Kb)$, once in an epoch. Leave the rate as it is and double the workers:
# the influence of every image is halved.
#
# The lab of this lesson (notebook 15) measures how far the weights get in an epoch. With twice the workers, they get
# about half as far.
#
# ## Should the rate change with the number of GPUs?
#
# If each image counts $K$ times less at a fixed rate, the obvious repair is to multiply the rate by $K$: the **linear
# scaling rule** (Krizhevsky 2014, arXiv:1404.5997; Goyal et al. 2017, arXiv:1706.02677). $K$ small steps and one step
# that is $K$ times as long end up in nearly the same place, as long as the gradient does not change much on the way.
#
# It cannot go on for ever. In a valley with curvature $h$, a step multiplies the distance from the bottom by
# $1 - \eta h$. If $\eta$ is larger than $2/h$, each step lands farther away, on the other side, and the loss grows with
# every step. With the rate $1/h$, one step ends exactly at the bottom. So even without any noise there is a best rate.
# Call it $\eta_{\max}$. In this valley it is $1/h$.
#
# A gradient of few images is noisy, and then the best rate is lower. Let $\mathcal B$ be the critical batch size of
# notebook 01. For a quadratic valley, the rate that gains most in a step is
#
# $$ \eta(B) = \frac{\eta_{\max}}{1 + \mathcal B / B} $$
#
# (McCandlish et al. 2018, arXiv:1812.06162). Take $\mathcal B = 64$ as an example. A batch of 1 has the best rate
# $\eta_{\max}/65$, and a batch of 2 has $\eta_{\max}/33$, almost twice as much. So far below $\mathcal B$ this is the
# linear rule. A batch of 64 has $\eta_{\max}/2$, and a batch of 640 has $\eta_{\max}/1.1$. So far above $\mathcal B$
# the rate hardly grows any more.
#
# The next experiment searches the best rate for 1 to 32 workers with 8 images each. The network is the small one of
# notebook 01, without batch normalisation. It trains for 3 epochs of 8,192 images, with five seeds.
#
# **What to look at:** on the left, where each curve has its valley, and how it moves. On the right, whether the best
# rates follow the line of proportion, and where they leave it.

# %%
result = saved("C20")
# %% [markdown]
# On the right, the best rate first grows with the batch. Then it leaves the line of proportion, and the fitted bend is
# at {{c20_critical}} images. From 1 to 8 workers, the batch grows 8 times, and the best rate about {{c20_early}} times.
# From 8 to 32 workers, the batch grows 4 times, and the best rate only {{c20_late}} times.
#
# Now look at the left panel, at the lowest point of each curve. Even at its best rate, 32 workers end at a loss of
# {{c20_loss_many}} nats, and one worker at {{c20_loss_one}}. All have seen the same images the same number of times. A
# better rate makes up for some of the missing updates, and not for all.
#
# The formula is about one step in a quadratic valley, and this experiment is about whole runs of equal epochs. So
# expect the formula's shape, and not its numbers.
#
# We have not run this sweep with batch normalisation. The experiment on schedules had batch normalisation and SGD, and
# there a scaled rate was far too high.
#
# ### Where is the bend?
#
# By the theory, the bend is at the critical batch size. We have three estimates of it for this network. The updates of
# notebook 01 say {{c28_critical}} images, its noise scale says {{c28_noise}}, and the rates above say {{c20_critical}}.
# They do not agree: the largest is more than three times the smallest. They belong to different stretches of training,
# and all three are rough. What you can plan with is only this: the bend lies at some tens to a hundred images, and not
# at a thousand.
#
# Other problems have other bends. Shallue et al. 2018 (arXiv:1811.03600) found the same pattern for many networks and
# data sets: with a larger batch, a goal needs fewer updates at first, and then as many as before. The critical batches
# differed by orders of magnitude. So there is no number of GPUs that is right for all problems. These runs use plain
# SGD. With Adam the critical batch is larger (Zhang and others 2019, arXiv:1907.04164).
#
# ### "Does the rate scale? And for Adam?"
#
# | optimizer | for $K$ times the batch | why | ends |
# | --- | --- | --- | --- |
# | SGD | $\eta \to K \eta$ | each image keeps its influence $\eta/(Kb)$ | beyond the critical batch |
# | Adam and relatives | $\eta \to \sqrt K\, \eta$ | it divides by the gradient's usual size, which is mostly noise | where noise is small |
# | LARS, LAMB (notebook 06) | no fixed rule, to be tuned; LAMB's authors take $\sqrt K$ (arXiv:1904.00962) | a step is a share of the layer's weights | to be searched for |
#
# <details><summary>Why only the square root for Adam?</summary>
#
# A run with four times the batch has only a quarter of the updates. So each update should go four times as far. Adam
# divides each step by the usual size of the gradient. If this size is mostly noise, then it is half as large with four
# times the batch, because the noise of a mean falls with the square root. So at the same rate, Adam already goes twice
# as far in the direction that matters. A rate that is twice as high brings the other factor of two. Twice is the square
# root of four. (Malladi et al. 2022, arXiv:2205.10287, derive this, and they change Adam's other constants as well.)
#
# </details>
#
# The lesson scripts of notebook 06 multiply Adam's rate by $K$, which is bold. Notebook 06 tests it, with and without
# **warmup**, in which the rate climbs slowly at the start.
#
# None of these rules holds everywhere. Shallue et al. 2018 searched the best rate for each batch in many workloads, and
# no rule came near it in all of them. Take a rule as the place where your search begins.
#
# And one trap: scale *once*. Some launchers and libraries multiply the rate for you.
#
# ## Do large batches find sharp minima?
#
# There is a more worrying explanation for a lower accuracy: that it is not a matter of *how far* training got, but of
# *where* it ends. Keskar et al. 2016 (arXiv:1609.04836) reported that large batches end in **sharp** minima, where
# the loss rises steeply when the weights move a little, and that these generalise worse.
#
# Sharpness can be measured. It is the curvature of the loss in the steepest direction. In mathematics it is the largest
# eigenvalue of a matrix, the **Hessian**, which holds all second derivatives of the loss. The lab of this lesson
# (notebook 15) computes it on a matrix of nine numbers, and says how this is done for a network.
#
# One worker and eight train the small ResNet with 32 images each, with five seeds, for 12 epochs. (For equal updates,
# eight workers train for 96.) There are only 2,048 training images, without distortions, so that they can come near a
# minimum at all. Again the large batch is looked at twice: at equal epochs and at equal updates.
#
# **What to look at:** the eigenvalues (one point for each seed, on a logarithmic axis) from left to right, and, in the
# caption, the training loss at each end: a sharpness means little at a place that is not a minimum. On the right, test
# accuracy: does it come back at equal updates?

# %%
result = saved("C29")

# %% [markdown]
# Does the large batch generalise worse because its minimum is sharper? This figure cannot say so. Three things to keep
# in mind, because this claim is quoted more often than it is tested:
#
# - **Sharpness fades with the loss.** A network that is sure of its training images tends to look flat, wherever it is.
#   At equal epochs the large batch has the higher training loss ({{c29_loss_epochs}} against {{c29_loss_small}} nats),
#   so a part of its sharpness is only this. At equal updates it has the lower loss ({{c29_loss_updates}}), and is still
#   {{c29_times_updates}} times as sharp. So at equal updates, this cannot be the reason.
# - **The large batch may not have arrived.** At equal epochs it has made fewer steps, so it may still be on its way to
#   a minimum. Hoffer et al. 2017 (arXiv:1705.08741) found that much of the gap goes away when the large batch trains
#   longer. Here most of the sharpness goes away, and the accuracy does not come back: it is {{c29_epochs}} % at equal
#   epochs, {{c29_updates}} % at equal updates, and {{c29_small}} % with the small batch. At equal updates, the large
#   batch knows its training images better than the small one does, and it still generalises worse.
# - **It depends on the images.** In the first experiment of this notebook, equal updates healed everything. There the
#   images are shifted and mirrored at random, and are never learnt by heart. So an answer for one set of images is not
#   an answer for all.
#
# The rate, and the way in which a network is written, change the sharpness, too. The lab says how. And others did not
# find the effect. Shallue et al. 2018 trained many networks with searched rates. They write: "we find no evidence that
# larger batch sizes degrade out-of-sample performance".
#
# ## Five patients
#
# Now find the cause yourself. Each patient is a program for four workers with 64 images each. The program for one
# worker makes 782 updates in an epoch. Its 8 epochs are counted from 0, as in your `rate_at`. Its rate is 0.1, and
# falls to 0.01 at the beginning of epoch 4. For four workers, a search has found that the best rate of this network is
# 0.4. All make 196 updates in an epoch. The five patients end at a lower accuracy than a healthy program. This is what
# they print:
#
# | | first images of workers 0 and 1 | rate in epochs 0, 4 and 7 | runs |
# | --- | --- | --- | --- |
# | a healthy program | 4181, 902, 17 and 23, 511, 7300 | 0.4, 0.04, 0.04 | 5 seeds |
# | patient A | 4181, 902, 17 and 4181, 902, 17 | 0.4, 0.04, 0.04 | 5 seeds |
# | patient B | 4181, 902, 17 and 23, 511, 7300 | 0.4, 0.4, 0.4 | 5 seeds |
# | patient C | 4181, 902, 17 and 23, 511, 7300 | 0.1, 0.01, 0.01 | 5 seeds |
# | patient D | 4181, 902, 17 and 23, 511, 7300 | 1.6, 0.16, 0.16 | 5 seeds |
# | patient E | 4181, 902, 17 and 23, 511, 7300 | 0.4, 0.04, 0.04 | 1 seed, 0.4 points lower |
#
# Write down a cause for each before you look.
#
# <details><summary>Patient A</summary>
#
# Workers 0 and 1 have the same images. Each worker shuffles all images with the same seed and takes its batches from
# the front. So all gradients are equal, and their mean is that of one worker. The line that gives each worker a shard
# is missing.
#
# </details>
#
# <details><summary>Patient B</summary>
#
# The rate has not fallen in epoch 4. Its schedule counts updates: it waits for update 4 × 782 = 3,128. With 196 updates
# an epoch, that comes in epoch 15, and the run ends before. (In the experiment above, a late decay helped. So whether
# it harms has to be tested. But it is not what this program was meant to do.)
#
# </details>
#
# <details><summary>Patient C</summary>
#
# There is no mistake in the images and none in the schedule. But the run makes a quarter of the updates at the rate of
# one worker. So each image counts a quarter. The search for this network has found that 0.4 is better. For a network of
# your own, you must search: a scaled rate can also be too high, as it was in the experiment on schedules.
#
# </details>
#
# <details><summary>Patient D</summary>
#
# The rate is 16 times that of one worker, and not four times. Somebody scaled it twice. Look for a launcher or a
# library that multiplies the rate, too.
#
# </details>
#
# <details><summary>Patient E</summary>
#
# Nothing is wrong, as far as one can see. One run of this network can end 0.4 points higher or lower by chance. Run
# more seeds before you look for a cause.
#
# </details>
#
# ## When your multi-GPU accuracy is lower: a list to go through
#
# 1. Count updates. Fewer than before? Then compare at equal updates once, to know what you are looking at. Lower
#    there too, at no higher training loss? Then it generalises worse, or its rate was not searched for.
# 2. Check that the workers' images differ, and that together they are all images (this notebook, and 03).
# 3. Check that all workers start from the same weights and stay equal (notebook 04).
# 4. Key the schedule by epochs of the *global* batch, warmup included.
# 5. Scale the rate: once, linearly for SGD, more carefully for Adam. This is where your search begins, and not its end.
#    In this notebook the scaled rate was far too high once. Add warmup (notebook 06).
# 6. Compare with the critical batch of your problem and your optimizer. Far beyond it, do not expect that a rate brings
#    the accuracy of a small batch back in the same epochs: use a smaller batch, or train longer.
# 7. Several seeds, mean and spread, last epoch, test images. If the interval of a difference contains zero, you have
#    not seen a difference.
#
# ## Summary
#
# - $K$ workers with the same per-worker batch make $1/K$ of the updates an epoch. That lowers accuracy where updates
#   are what is missing; the comparison at equal updates tells.
# - A schedule in updates changes its meaning with the number of workers. A schedule in epochs does not.
# - At a fixed rate, each image counts $K$ times less with $K$ workers, because it enters with the weight
#   $\eta / (Kb)$.
# - The best rate grows with the global batch and levels off. The bend is the critical batch size, whose order of
#   magnitude the noise scale tells.
# - Large batches end in sharper minima here, and most of that goes away at equal updates. In that experiment, where the
#   images are not distorted, the accuracy does not come back.
#
# The lines to keep:
#
# ```python
# updates_per_epoch = math.ceil(images / (batch * hvd.size()))
# epoch = update // updates_per_epoch  # counted from 0: a schedule is keyed by this
# rate = base_rate * hvd.size()  # for SGD, once: the place where a search begins
# ```
#
# ## Questions
#
# <details><summary>Question 1: with the same per-worker batch, eight workers reach your target accuracy after as
# many updates as one worker did. How much time have you saved?</summary>
#
# None. An update takes each worker as long as before, plus the exchange. You have used eight times the images for it.
# Time is saved only where a larger batch lets you make *fewer* updates, with a higher rate, below the critical batch
# size.
#
# </details>
#
# <details><summary>Question 2: a colleague moves the decay of her run on four GPUs from epoch 30 to epoch 60, and
# it gets better. She concludes that four GPUs need a later decay. What else could it be?</summary>
#
# The rate may have been too low for the larger batch from the start: a later decay then makes up for a rate that was
# not scaled. Scale the rate first, with warmup, and then compare both schedules again, over several seeds.
#
# </details>
