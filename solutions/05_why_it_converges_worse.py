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
# **Time:** about {{minutes_05}} minutes, and about two more of waiting on 2 CPU cores. **Builds on:** 01 (noise,
# critical batch size), 03 (averaging gradients, shards) and 04 (Horovod).
#
# In the last two notebooks, four workers computed exactly what one worker with a four times larger batch would compute.
# (Batch normalisation is an exception, because each worker has statistics of its own.) Nothing is lost on the way. And
# yet many people ask the same question about training on several GPUs: *why is my accuracy lower now?*

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import numpy as np

from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.claims.lesson_05 import c15_path_of_an_epoch as c15
from benchmarks.experiment.plots import axes, panels
from cifar.data import shard, shuffle, updates_per_epoch
from lessons import compare, horovodrun, live, saved, show

# %% [markdown]
# ## "My accuracy is lower now"
#
# You train a small network with one worker. It reaches {{c04_one}} %. Then you start four workers with the same
# program, and wait a quarter of the time. The network is worse. You try it again with another seed. It is worse again.
# What went wrong?
#
# **Guess first.** Write one letter and one number into the next cell. By how many points (per cent of the test images)
# is the network worse? And who did it?
#
# - (a) Averaging the gradients loses information.
# - (b) The workers see the wrong images.
# - (c) The network has made too few steps.
# - (d) It is bad luck.

# %%
guess, my_guess = "?", None  # a letter, and a number of points, such as 10

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
# Both runs have seen every image {{c04_epochs}} times. But one has changed its weights {{c04_updates_one}} times, and
# the other {{c04_updates_four}} times. In general, $K$ workers with $b$ images each use $Kb$ images in an update, and
# $N$ images are used up after $N / (Kb)$ updates.
#
# ### The experiment
#
# Four workers train twice. The first time they stop after as many images as one worker has used. The second time they
# train four times as long, so that they make {{c04_updates_one}} updates, too. In every run of this story the rate
# falls along a straight line, and it is zero at the end of that run. The panel on the right shows where these runs end.
# Its first point is one worker.

# %%
saved_c04 = saved("C04")
compare("four_workers", my_guess)
print({"c": "Your letter was right: too few steps."}.get(guess, f"Your letter was {guess}. It is c: too few steps."))

# %% [markdown]
# After as many images, the four workers reach {{c04_four}} %. **With equal steps, they reach {{c04_four_updates}} %.**
# That is {{c04_gain}} points *more* than one worker reaches (95 % interval: {{c04_gain_interval}}). Nothing is lost by
# averaging. At equal steps, more images in each step are better here. There can be two reasons, and this experiment
# does not tell them apart. A gradient of more images has less noise. And the four workers have seen every image four
# times as often, each time shifted and mirrored in another way.
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
# At a constant rate, in the other two panels, runs differ more from seed to seed. There the noise shakes the weights
# until the end, and a larger batch is shaken less. That favours several workers, so it hides a part of what they lose.
# With a rate that falls to zero, as in most recipes, the last steps are tiny, and all runs come to rest.
#
# The course began with numbers of this kind. One GPU reached 86 % on CIFAR-10. Two reached 84 % in half the time, and
# somebody concluded that averaging gradients costs accuracy. Those two GPUs had made half as many updates.
#
# How was this measured? Accuracies do not depend on who waits for whom. So one process computes what $K$ workers would
# compute: each worker's part in turn, with its own random numbers and batch statistics, and then one update with the
# mean gradient. A test compares this with real workers. You can run a small version yourself: `live("C04")`. It has two
# epochs of few images. That is too little to show the effect, but it shows how the experiment is made.
#
# ### See it on your machine
#
# Real workers, and the script with batch normalisation: one worker first, then several, which go on until they have
# made as many updates.

# %%
batch = 64
one = horovodrun("cifar_batch_norm.py", 1, epochs=epochs, images=images, batch_size=batch, seed=seed, device=device)

# %%
many = horovodrun(
    "cifar_batch_norm.py", workers, epochs=epochs * workers, images=images, batch_size=batch, seed=seed, device=device
)

# %%
figure, (left, right) = panels(("epochs", "test accuracy (%)"), ("updates", "test accuracy (%)"))
for size, lines in ((1, one), (workers, many)):
    accuracy = [100 * line["test_accuracy"] for line in lines]
    done = np.array([line["epoch"] for line in lines])
    left.plot(done, accuracy, label=f"{size} worker{'s' * (size > 1)}")
    right.plot(done * updates_per_epoch(images, batch, size), accuracy)
left.legend()
left.locator_params(axis="x", integer=True)
ends = f"{one[-1]['test_accuracy']:.1%} for one worker, {many[epochs - 1]['test_accuracy']:.1%} for {workers}"
same = f"{one[-1]['test_accuracy']:.1%} and {many[-1]['test_accuracy']:.1%}"
show(
    figure,
    f"The same two runs against epochs and against updates. After {epochs} epoch(s): {ends}. Equal updates: {same}.",
    f"After {epochs} epoch(s): {ends}. After as many updates as one worker made: {same}. One run each: no verdict.",
)

# %% [markdown]
# Read the two panels as two questions. On the left: *how good is the network when each image has been used so many
# times?* On the right: *how good is it after so many steps?* The **running statistics** of batch normalisation, which
# tests use in place of a batch's own, follow the weights slowly: after $n$ updates, $0.9^n$ of them is still their
# start. So the first points are lower than the network deserves, above all those of several workers.
#
# Two ways lead out, and the rest of the course is about them. Divide the per-worker batch by $K$, which restores the
# run of one worker (notebook 03; batch normalisation aside). Or let every step go further, with a rate that is
# multiplied, that climbs slowly at the start, and that is perhaps different for each layer (notebook 06).
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
# The course judges a little differently. The sentence below the saved figure (its *verdict*) pairs the runs of equal
# seeds, which takes out what these runs have in common. And it takes the exact factor for the 95 % interval, which for
# five pairs is 2.8 standard errors. Yours takes two, a rule of thumb for many seeds. So with few seeds yours calls a
# difference "higher" more readily. Near the border believe the verdict.
#
# ## "Is every GPU seeing the same data?"
#
# Another cause of a lower accuracy looks just the same from outside, and is a mistake: every worker trains on the
# same images. Then all gradients are equal, their mean is any one of them, and $K$ workers do the work of one, $K$
# times. Look at the indices that the workers use for one update:

# %%
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
# Most recipes let the rate fall during training: halve it after so many epochs, say. A program counts updates.
# Someone once worked out that 10 epochs are 3,910 updates of 128 images, and wrote `if update == 3910`. Now four
# workers make a quarter of the updates an epoch. Update 3,910 comes in epoch 40, if it comes at all.
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
# Does it matter for accuracy? The experiment trains four workers with a schedule that halves the rate every epoch,
# keyed by epoch and keyed by one worker's updates, with nothing else changed. It does so from the **base rate**, which
# is that of one worker, and from the rate scaled by four.
#
# **What to look at:** on the left the rates that the runs really used: the stairs of "by step" are four times as wide.
# On the right, for each starting rate, which of the two ends higher. Compare both with the line of one worker, too.
# Guess before you look: is a rate that stays high too long always bad?

# %%
runs = live("C06", device=device, seed=seed)
# %%
result = saved("C06")
# %% [markdown]
# The left panel is arithmetic: keyed by step, the rate stays high four times as long. The right panel is a surprise.
# **Keyed by step, the four workers end higher**: by {{c06_base}} points from the base rate, and by {{c06_scaled}}
# points from the scaled one.
#
# Should you write schedules in steps, then? Look at the line of one worker, at {{c06_one}} %. (This is another schedule
# than in the first experiment of this notebook, so one worker ends at another accuracy.) From the scaled rate,
# both schedules end far below it: that rate was too high from the first update on, whatever came later. From the base
# rate, four workers make a quarter of the updates, and a rate that stays high for longer makes up for some of them, by
# accident.
#
# So write schedules in epochs all the same. It promises no higher number. It keeps one cause of change, the schedule,
# out of your comparison of one worker with four. Otherwise four workers may reach one worker's accuracy by two mistakes
# that cancel: a rate that nobody searched for, and a decay that comes too late.
#
# Decaying the rate is also not the only way to make updates less noisy: a larger batch does so too, and the two can
# be exchanged for each other within limits (Smith et al. 2017, arXiv:1711.00489).
#
# ## How far the weights get
#
# Write out what one epoch does to the weights with plain SGD, rate $\eta$, and $N$ images in global batches of $Kb$:
#
# $$ w_{\text{end}} - w_{\text{start}} = -\sum_{t=1}^{N/(Kb)} \eta\, \hat g_t
#    = -\frac{\eta}{Kb} \sum_{i=1}^{N} \nabla \ell_i(w_{t(i)}). $$
#
# Each image's own gradient enters once, with the weight $\eta / (Kb)$. Leave the rate as it is and double the workers:
# every image's influence is halved. This is the claim. It can be measured by the **path** of an epoch, the sum of the
# lengths of its updates $\lVert w_{t+1} - w_t \rVert$.
#
# How fast should the path shrink? The expected squared length of a batch's gradient is that of the true gradient $g$
# plus noise. The noise of a single image has the mean squared length $\operatorname{tr} \Sigma$, and a batch of $Kb$
# images has $Kb$ times less (notebook 01). So
#
# $$ \text{path} \approx \frac{N}{Kb}\, \eta \sqrt{\lVert g \rVert^2 + \frac{\operatorname{tr} \Sigma}{Kb}}
#    = \frac{N \eta \lVert g \rVert}{Kb} \sqrt{1 + \frac{\mathcal B}{Kb}},
#    \qquad \mathcal B = \frac{\operatorname{tr} \Sigma}{\lVert g \rVert^2}. $$
#
# There is the noise scale $\mathcal B$ again. Let us see what it does:

# %%
figure, ax = axes("workers", "path of an epoch, relative to one worker")
sizes = np.array(c15.SIZES)
for noise_scale in (1, 64, 10_000):
    path = np.sqrt(1 + noise_scale / (sizes * batch)) / sizes
    ax.loglog(sizes, path / path[0], label=f"noise scale {noise_scale:,}")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
steep = np.log(path[-1] / path[0]) / np.log(sizes[-1])
show(
    figure,
    "Three falling lines on logarithmic axes: the larger the noise scale, the steeper the line.",
    f"What the formula says for {batch} images a worker. Without noise the slope is -1; drowned in noise, {steep:.2f}.",
)

# %% [markdown]
# So, *for the same* $\lVert g \rVert$, the claim's $1/K$ is the slow end. While noise rules, the path shrinks faster:
# there are fewer updates, and each is shorter, because averaging has removed noise that pointed nowhere. That second
# part of the path is no loss.
#
# **What to look at:** the slope of SGD's line beside $1/K$. And Adam's (Kingma and Ba 2014, arXiv:1412.6980): it
# divides a running mean of the gradient by a running root mean square of it, so an update does not get shorter when the
# gradient does. Where does that put its slope?

# %%
runs = live("C15", device=device, seed=seed)
# %%
result = saved("C15")
# %% [markdown]
# SGD's path falls as the number of workers to the power {{c15_sgd}}, and Adam's to the power {{c15_adam}}. So both fall
# a little more slowly than $1/K$. A slope steeper than -1 would show noise that was averaged away, and we do not see
# that. A slope flatter than -1 the formula alone cannot explain. After an epoch of fewer updates a run is at an earlier
# stage, where gradients can be longer. So the slope is only a hint of the noise scale.
#
# ## Should the rate change with the number of GPUs?
#
# If the path shrinks as $1/K$ at a fixed rate, the obvious repair is to multiply the rate by $K$: the **linear
# scaling rule** (Krizhevsky 2014, arXiv:1404.5997; Goyal et al. 2017, arXiv:1706.02677). $K$ small steps and one step
# that is $K$ times as long end up in nearly the same place, as long as the gradient does not change much on the way.
#
# It cannot go on for ever. Without any noise at all there is still a best rate: beyond it a step overshoots the
# valley. For a quadratic valley with noise in the gradient, the rate that gains most in a step is
#
# $$ \eta(B) = \frac{\eta_{\max}}{1 + \mathcal B / B} $$
#
# (McCandlish et al. 2018, arXiv:1812.06162). For $B \ll \mathcal B$ this is the linear rule; for $B \gg \mathcal B$
# it is a constant. The batch where one turns into the other is the critical batch size.
#
# **What to look at:** on the left, where each curve has its valley, and how it moves. On the right, whether the best
# rates follow the line of proportion, and where they leave it.

# %%
runs = live("C20", device=device, seed=seed)
# %%
result = saved("C20")
# %% [markdown]
# The experiment does what people do: equal epochs, and many updates. The formula is about one step in a quadratic
# valley. So expect its shape, not its numbers. The noise scale itself grows while the loss falls (notebook 01), so a
# whole run has no single critical batch, only one that is typical of it. And a run with few updates has no time to
# make up for small steps, which speaks for higher rates.
#
# The network is the small one of notebook 01, without batch normalisation. With it a rate means something else: batch
# normalisation makes the loss blind to the scale of the weights before it, so they can grow until the steps are small
# beside them. We have not run this sweep with it. The scaled rate in the experiment on schedules shows that with it,
# too, a rate can be far too high.
#
# ### The critical batch, seen from the other side
#
# Notebook 01 estimated the noise scale from gradients alone. The other half of that claim is about the number of
# updates that it takes to reach a given loss, when each batch size has its own best rate:
#
# $$ S(B) = S_{\min} \left( 1 + \frac{\mathcal B}{B} \right). $$
#
# Compare this with $\eta(B)$: the product of the two does not depend on $B$. To get there the weights have so far to
# go, and steps that are twice as long need half as many. *Well* below the critical batch, doubling the workers halves
# the updates, and the scaled rate pays for the larger batch in full. Nearer to it, less is saved. From half the
# critical batch to the whole, the updates fall by a third, from $3 S_{\min}$ to $2 S_{\min}$. Above it, you pay with
# images for ever fewer updates saved. The linear rule is too bold there as well: at the critical batch, the best rate
# is half of what the rule says.
#
# You know this experiment from notebook 01. There the curve had its bend at {{c28_critical}} images, and the noise
# scale was {{c28_noise}}. In the rate sweep above, the bend is at {{c20_critical}}.
#
# All three numbers belong to the same network, so they may be compared. They do not agree: the largest is more than
# three times the smallest. They belong to different stretches of training, and all three are rough. What you can plan
# with is only this: the bend lies at some tens to a hundred images, and not at a thousand. Shallue et al. 2018
# (arXiv:1811.03600) found the pattern, updates that fall and then stay, for many networks and data sets, with critical
# batches that differ by orders of magnitude. There is no number of GPUs that is right for all problems. Nor is there
# one for all optimizers. These runs use plain SGD, and with Adam the critical batch is larger (Zhang and others 2019,
# arXiv:1907.04164).
#
# ### "Does the rate scale? And for Adam?"
#
# | optimizer | for $K$ times the batch | why | ends |
# | --- | --- | --- | --- |
# | SGD | $\eta \to K \eta$ | each image keeps its influence $\eta/(Kb)$ | beyond the critical batch |
# | Adam and relatives | $\eta \to \sqrt K\, \eta$ | noise sets the length of the denominator | where noise is small |
# | LARS, LAMB (notebook 06) | no fixed rule, to be tuned; LAMB's authors take $\sqrt K$ (arXiv:1904.00962) | a step is a share of the layer's weights | to be searched for |
#
# The square root for Adam has a derivation (Malladi et al. 2022, arXiv:2205.10287): while noise dominates, Adam divides
# by the noise's size, which falls as $1/\sqrt K$, so the same rate already goes further in the direction that matters.
# (The full rule also changes Adam's two betas and its epsilon.) You have just seen a side of it in the path: a larger
# batch does not make Adam's updates shorter. It can even make them longer, since with less noise the running mean
# cancels less, while the denominator only knows sizes. Multiplying Adam's rate by $K$, as the lesson scripts of
# notebook 06 do (and `cifar_lamb.py` LAMB's), is therefore bold. Notebook 06 tests it, with and without **warmup**, in
# which the rate climbs slowly at the start.
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
# Sharpness can be measured. Near a minimum the loss is about $L(w + v) \approx L(w) + \tfrac12 v^\top H v$, with the
# **Hessian** $H$, the matrix of second derivatives. Its largest eigenvalue says how steep the steepest direction is.
# For half a million weights $H$ would have $10^{11}$ entries, but we never need them: the product $Hv$ is the gradient
# of the number $g \cdot v$ (Pearlmutter 1994), and multiplying a random vector by $H$ again and again turns it towards
# the direction with the largest eigenvalue (largest in size, whatever its sign). On a matrix that we can look at:

# %%
import torch

from benchmarks.methods.hessian import largest_eigenvalue

matrix = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
vector = torch.ones(3)
for step in range(6):
    vector = matrix @ vector / vector.norm()
    print(f"after {step + 1} products the vector is {vector.norm():.4f} times as long as before")
print(f"largest eigenvalue: {torch.linalg.eigvalsh(matrix)[-1]:.4f}")
print(f"benchmarks/methods/hessian.py finds {largest_eigenvalue(lambda v: matrix @ v, torch.ones(3)):.4f}")

# %% [markdown]
# Now the networks. One worker and eight train on a few images, without distortions, so that they can come near a
# minimum at all. Again the large batch is looked at twice: at equal epochs and at equal updates.
#
# **What to look at:** the eigenvalues (a point a seed; the axis is logarithmic) from left to right, and, in the
# caption, the training loss at each end: a sharpness means little at a place that is not a minimum. On the right, test
# accuracy: does it come back at equal updates?

# %%
runs = live("C29", device=device, seed=seed)
# %%
result = saved("C29")

# %% [markdown]
# Read the verdict together with the training losses. Seven things to keep in mind, because this claim is quoted more
# often than it is tested:
#
# - **Sharpness fades with the loss.** The second derivative of cross-entropy is made of products $p(1 - p)$ of the
#   predicted probabilities, and goes to zero as the network becomes sure of its training images. Of two networks, the
#   one that has learnt the images better tends to look flatter, wherever it is. At equal epochs the large batch has the
#   higher training loss ({{c29_loss_epochs}} against {{c29_loss_small}} nats), so a part of its sharpness is only this.
#   At equal updates it has the lower loss ({{c29_loss_updates}}), and is still {{c29_times_updates}} times as sharp.
#   There this cannot be the reason.
# - **Fewer updates are not another minimum.** At equal epochs the large batch has walked a shorter path, and may be on
#   the way still. Hoffer et al. 2017 (arXiv:1705.08741) found that much of the gap goes away when the large batch
#   trains longer. Here most of the sharpness goes away, and the accuracy does not come back: it is {{c29_epochs}} % at
#   equal epochs, {{c29_updates}} % at equal updates, and {{c29_small}} % with the small batch. So updates are not what
#   is missing here. The large batch has learnt its images by heart, and generalises worse.
# - **It depends on the images.** In the first experiment of this notebook, equal updates healed everything. There the
#   images are shifted and mirrored at random, and never learnt by heart. At equal updates, four workers have seen four
#   times as many of them.
# - **Sharpness depends on the rate.** *Full-batch* gradient descent at rate $\eta$ cannot stay where the largest
#   eigenvalue is much above $2/\eta$ (with momentum $m$, as in our runs, $2(1+m)/\eta$), and for much of training stays
#   near it; with cross-entropy it falls again at the end (Cohen et al. 2021, arXiv:2103.00065). A small batch at the
#   same rate is shaken out of steep places sooner. Compare batches at rates of their own, and the comparison changes.
# - **Sharpness depends on how you write the network.** With ReLU, multiply one layer by 10 and divide the next by 10:
#   the function is the same, the eigenvalue is not (Dinh et al. 2017, arXiv:1703.04933). Batch normalisation has the
#   same effect: the weights before it can grow, the function stays, and the eigenvalue falls. So sharpness can
#   accompany bad generalisation without being its cause.
# - **How it was measured here.** The network was in evaluation mode, so batch normalisation used its stored statistics.
#   All runs have one rate, so this experiment cannot tell what another rate would do.
# - **Others did not find it.** Shallue et al. 2018 trained many networks with searched rates. They write: "we find no
#   evidence that larger batch sizes degrade out-of-sample performance".
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
# 6. Compare with the critical batch of your problem and your optimizer. Beyond it no rate brings the accuracy of a
#    small batch back in the same epochs: use a smaller batch, or train longer.
# 7. Several seeds, mean and spread, last epoch, test images. A difference inside its interval is not one.
#
# ## Summary
#
# - $K$ workers with the same per-worker batch make $1/K$ of the updates an epoch. That lowers accuracy where updates
#   are what is missing; the comparison at equal updates tells.
# - A schedule in updates changes its meaning with the number of workers. A schedule in epochs does not.
# - At a fixed rate the path of an epoch shrinks about as $1/K$: in theory it shrinks faster while noise rules, which we
#   have not seen, and slower where gradients stay longer in runs of fewer updates.
# - The best rate grows with the global batch and levels off. The bend is the critical batch size, whose order of
#   magnitude the noise scale tells.
# - Large batches end in sharper minima here, and most of that goes away at equal updates. Read such a comparison with
#   its training losses.
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
#
# <details><summary>Question 3: you double the workers, and the path of an epoch falls to almost exactly half. What does
# that tell you of the noise scale?</summary>
#
# Little. *If* the gradient itself is as long as before, noise is already small in the gradient of the batch. But a run
# of fewer updates is at an earlier stage, where gradients can be longer, and that hides what averaging takes away.
# Measure the noise scale itself (notebook 01). (With Adam it tells you less still: noise does not make its updates
# longer in the first place.)
#
# </details>
