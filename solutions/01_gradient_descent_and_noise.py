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
# # 01 Gradient descent and its noise
#
# **After this notebook you will be able to** say how far a batch's gradient is from the gradient of all images, predict
# where SGD ends, measure with a few workers how noisy gradients are, and read from this how large a batch is worth its
# images.
#
# **Time:** about {{minutes_01}} minutes, and about one minute of waiting on 2 CPU cores. **Builds on:** 00, and a
# little PyTorch.
#
# Why begin here, in a course about many GPUs? A **worker** is a process that trains on its own share of the images,
# often with a GPU of its own. Several workers that average their gradients do one thing to the mathematics: they make
# the batch larger. So much of what surprises people about many GPUs begins with what a batch's size does to a step.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import numpy as np
import torch
from IPython.display import Markdown

from benchmarks.claims.lesson_01 import c28_critical_batch_size as c28
from benchmarks.experiment.plots import PURPLE
from cifar.data import load
from lessons import compare, live, panels, saved, show

torch.manual_seed(seed)

# %% [markdown]
# ## All the data, or a part of it?
#
# A network with weights $w$ has a loss $\ell_i(w)$ for image $i$, and $L(w) = \frac1N \sum_i \ell_i(w)$ for all $N$
# images. **Gradient descent** goes downhill by all of them:
#
# $$ w \leftarrow w - \eta\, g, \qquad g = \nabla L(w) = \frac1N \sum_{i=1}^{N} \nabla \ell_i(w). $$
#
# $\eta$ is the **learning rate**, in this course just the *rate*. **Stochastic gradient descent** (SGD) draws $B$
# images at random for each update and uses their mean gradient $\hat g$ instead. An update costs $B$ images rather than
# $N$.
#
# To see both, take a model with two weights, so that its loss is a surface we can draw. It predicts the brightness of
# the middle of an image from that of its left and of its right edge. Each brightness is shifted and scaled to mean 0
# and deviation 1.

# %%
train, test = load(limit=images)
columns = train.images.double().mean(dim=(1, 2))  # (N, 32): the mean of each column of pixels
left, middle, right = (part.mean(1) for part in columns.split([8, 16, 8], dim=1))
left, middle, right = ((part - part.mean()) / part.std() for part in (left, middle, right))
inputs, targets = torch.stack([left, right], dim=1), middle
print("inputs", tuple(inputs.shape), "targets", tuple(targets.shape))

# %% [markdown]
# With half the mean squared error as the loss, the gradient is one line. The two methods differ in which rows it gets.


# %%
def gradient(w, rows):
    errors = inputs[rows] @ w - targets[rows]
    return inputs[rows].T @ errors / len(rows)


def descend(choose, rate=0.1, updates=150):
    w = torch.tensor([-1.0, 0.6], dtype=torch.float64)
    for _ in range(updates):
        w = w - rate * gradient(w, choose())
    return w


everything = torch.arange(len(targets))
for _ in range(2):
    print("gradient descent", descend(lambda: everything).tolist())
for _ in range(3):
    print("SGD, 8 images   ", descend(lambda: torch.randint(len(targets), (8,))).tolist())

# %% [markdown]
# Gradient descent gives the same answer each time. SGD gives another one each time, near it. Is it just not finished?
# It is as finished as it will ever be. Near the minimum $g$ vanishes. But $\hat g$ does not, because a few images never
# agree exactly. So every update is a small kick, and the slope pulls back. A higher rate makes the kicks larger. A
# larger batch makes them smaller. In the end kicks and slope balance, and the distance from the minimum $w^*$ stays
# about the same. Square the distances of many updates, take the mean of the squares, and then its root. ($\mathbb E$
# stands for a mean.) For small rates this is
#
# $$ \sqrt{\mathbb E \lVert w - w^* \rVert^2} \approx c\, \sqrt{\eta / B} $$
#
# The number $c$ depends on the problem alone. So half the rate and twice the batch have the same effect: the distance
# becomes $\sqrt 2$ times smaller. The loss near a minimum grows with the square of the distance. So the extra loss is
# proportional to $\eta / B$, without the root.
#
# <details><summary>Where does the root come from?</summary>
#
# Take a single weight. Let $h$ be the curvature of the loss: it says how quickly the slope changes. Let $\sigma^2$ be
# the variance of one image's gradient. An update multiplies the distance by $1 - \eta h$, and adds noise of variance
# $\eta^2 \sigma^2 / B$. The two balance where the variance of the weight is about $\eta \sigma^2 / (2 h B)$. The
# distance is the root of it. Mandt et al. 2017 (arXiv:1704.04289) treat SGD that way, as a random process that has
# settled.
#
# </details>
#
# **What to look at:** on the left the two paths. On the right the distance at which SGD stays, for three rates and
# three batch sizes: do all nine points lie on one line, and is its slope one half?

# %%
runs = live("C12", device=device, seed=seed)

# %% [markdown]
# The full experiment has more runs side by side, over all images:

# %%
result = saved("C12")

# %% [markdown]
# ![](drawings/noise_ball.svg)
#
# Move the dials yourself:

# %%
from lessons import explore

explore("cloud")

# %% [markdown]
# Three things to take along.
#
# - **Both come near the minimum, at very different prices.** The caption counts the images that each path used. While
#   the minimum is far away, a rough direction is all you need, and a rough direction is cheap.
# - **Only the ratio $\eta / B$ matters** for where SGD ends, as long as the rate is small. If four workers make the
#   batch four times as large and you multiply the rate by four, the noise at the end is what it was. Remember this when
#   notebook 05 asks whether the rate should grow with the number of GPUs.
# - **Theory is for small rates.** It lets the rate go to zero. Look at the highest rate on the right: its points tend
#   to lie above the line. The theory treats steps as if they were infinitely small, and here they are not.

# %% [markdown]
# ## How wrong is the gradient of a batch?
#
# A question that stands behind many others, in the words of a puzzled user of two GPUs: is an average of gradients not
# less accurate than "the" gradient?
#
# Look at the formula of $g$ again. "The" gradient *is* an average, over all images. A batch's gradient is an average
# over fewer. Our model has only two weights, so we can draw the gradient of each image as an arrow:
#

# %%
each = -inputs * targets.unsqueeze(1)  # (N, 2): the gradient of each image where both weights are 0
figure, parts = panels(*[("first coordinate", "second coordinate")] * 3, size=(9.0, 3.4))
for ax, batch in zip(parts, (1, 8, 64), strict=True):
    drawn = torch.stack([each[torch.randint(len(each), (batch,))].mean(0) for _ in range(200)])
    ax.plot(*drawn.T, ".", color="0.5", markersize=3)
    ax.annotate("", each.mean(0), (0, 0), arrowprops={"arrowstyle": "->", "color": PURPLE, "linewidth": 2})
    ax.set(title=f"B = {batch}", xlim=(-3, 1.5), ylim=(-3, 1.5), aspect="equal")
show(
    figure,
    "Three clouds of points around the tip of one arrow. The cloud for 64 images is the smallest.",
    "Arrow: the gradient of all images. Dots: the gradients of 200 batches of B images, where their arrows would end.",
)

# %% [markdown]
# The arrow is the same in all three panels. The larger the batch, the nearer its gradient is to the tip of the arrow.
#
# Now measure how far each image's gradient lies from the mean gradient $g$, square these distances, and average them.
# This number is the **noise** of a single image. Books write it $\operatorname{tr} \Sigma$: it is the sum of the
# variances of all coordinates, the trace of the covariance $\Sigma$. The variance of a mean of $B$ independent draws is
# that of one draw divided by $B$. So
#
# $$ \mathbb E \lVert \hat g - g \rVert^2 = \frac{\operatorname{tr} \Sigma}{B}. $$
#
# An epoch is one pass over all images, in a shuffled order.
#
# <details><summary>What if an image comes twice, or cannot come twice?</summary>
#
# In an epoch no image comes twice. Then the squared error is smaller still, by the factor $(N - B) / (N - 1)$: with
# $B = N$ nothing is left to chance. If a batch holds four copies of an image, these four count as one. Four different
# crops of an image have similar gradients, so they count as more than one, but as less than four.
#
# </details>
#
# Your turn: compute that error from the gradients of all images. No batch has to be drawn for it, because the formula
# gives it exactly.


# %% exercise="squared_error"
import numpy as np


def squared_error(gradients: list[list[float]], batch: int) -> float:
    ### BEGIN SOLUTION
    gradients = np.array(gradients)
    distances = np.square(gradients - gradients.mean(axis=0)).sum(axis=1)
    return float(distances.mean()) / batch
    ### END SOLUTION


# %% [markdown]
# Now with a real network. The experiment trains the lessons' small ResNet for a few updates, computes the gradient over
# all training images, and then the gradients of many batches. Their mean squared distance is drawn in units of
# $\lVert g \rVert^2$. At 1, the squared error is as large as the squared length of the gradient itself.
#
# **What to look at:** if averaging over more images made the gradient worse, the line would rise. If theory is right
# it falls with slope $-1$. And look where it crosses 1.

# %%
networks = live("C03", device=device, seed=seed)["gradients"]

# %%
result = saved("C03")

# %% [markdown]
# The answer is the other way round. An average over more images, also over more *workers'* images, is closer to the
# gradient of all. If two GPUs end at a lower accuracy than one, the accuracy of the averaged gradient is not why.
# Notebook 05 finds the reasons.
#
# Each line belongs to a network that began with another seed. All lines fall equally fast, because the slope is
# mathematics. They lie at very different heights, because each is a single moment of one network. A line lies high if
# the images disagree a lot (a large $\operatorname{tr}\Sigma$), or if the full gradient is short (a small
# $\lVert g\rVert^2$). The ratio of these two is the most useful number of this notebook, as the next section shows.

# %% [markdown]
# ## How large may a batch be?
#
# A colleague has 64 GPUs. How many of them should share one update? A batch of twice the size gives a better gradient
# and costs twice as much. When is it worth it? There are two extremes.
#
# - **Small batches.** The noise is larger than the gradient, so a step goes mostly in a random direction. Its rate must
#   be low. With twice the images, the squared error is half as large. The rate can be almost twice as high, and the
#   step gains almost twice as much.
# - **Large batches.** There is hardly any noise left. With twice the images a step gains hardly more.
#
# The border is where the noise is as large as the gradient. In the figure above, each line crosses 1 there. This batch
# size is the **gradient noise scale** $\mathcal B$, in images (McCandlish et al. 2018, arXiv:1812.06162):
#
# $$ \mathcal B = \frac{\operatorname{tr} \Sigma}{\lVert g \rVert^2}. $$
#
# How much does a step gain? Imagine the loss as a bowl that is equally round in all directions, and let its **curvature**
# $h$ say how quickly the slope changes. A step with the rate $\eta$ changes the loss in two ways. Downhill it gains
# $\eta \lVert g \rVert^2$. But the slope changes on the way, and this costs
# $\frac12 h \eta^2 (\lVert g \rVert^2 + \operatorname{tr} \Sigma / B)$: the longer the step, the more, and noise makes a
# step longer. The difference is largest at the rate $\eta = \frac{1}{h\,(1 + \mathcal B / B)}$. There, a step gains the
# share
#
# $$ \frac{1}{1 + \mathcal B / B} $$
#
# of the most that a step can gain. For example, let $\mathcal B$ be 500. A step with 500 images gains half of the most.
# So if $\mathcal B$ stays the same, the run needs twice as many updates as with very large batches. A step with 50
# images gains an eleventh, so the run needs 11 times as many. The images that a run uses are its updates times $B$:
#
# | batch | a step gains | updates of a run | images of a run |
# | ---: | ---: | ---: | ---: |
# | 50 | 1/11 of the most | 11 times the least | 1.1 times the least |
# | 500 | 1/2 | 2 times | 2 times |
# | 5,000 | 10/11 | 1.1 times | 11 times |
#
# <details><summary>Where do the two parts and the best rate come from?</summary>
#
# The step is $-\eta\, \hat g$. By the Taylor series, the loss changes by $-\eta\, g \cdot \hat g$ and by
# $+\frac12 h \eta^2 \lVert \hat g \rVert^2$. On average $\hat g$ is $g$, and the mean of $\lVert \hat g \rVert^2$ is
# $\lVert g \rVert^2 + \operatorname{tr} \Sigma / B$. These are the two parts. The gain is largest where its derivative by
# $\eta$ is zero, which gives the rate. With this rate the gain is
# $\frac{\lVert g \rVert^2}{2h} \cdot \frac{1}{1 + \mathcal B / B}$. McCandlish et al. 2018 derive it for any bowl.
#
# </details>
#
# Now in general. Let $S_{\min}$ be the least number of updates, which very large batches need. Then the updates $S$ of a
# run, and its images, are
#
# $$ S = S_{\min} \left(1 + \frac{\mathcal B}{B}\right), \qquad S B = S_{\min} \left(B + \mathcal B\right). $$
#
# Far below $\mathcal B$, twice the batch halves the updates, and the images stay as many: a perfect bargain. Far above
# it, twice the batch needs as many updates as before, and so twice the images. At $B = \mathcal B$ you need twice the
# least number of updates, and twice the least number of images. So this is the **critical batch size**. Below it, your
# colleague's GPUs save time. Far above it, they burn power for next to nothing.
#
# ### Measuring it with workers
#
# To compute $g$ over all images at every update is too expensive, and the gradients of single images are too many to
# store. But $K$ workers already have what we need. Each has a gradient of its $b$ images. The **all-reduce**, an
# exchange after which all have the same result, gives the average. This is a gradient of $Kb$ images. On average over
# many batches the squared length of a batch's gradient is
#
# $$ \mathbb E \lVert \hat g_B \rVert^2 = \lVert g \rVert^2 + \frac{\operatorname{tr} \Sigma}{B}. $$
#
# Two batch sizes, two equations, two unknowns. Solve them:


# %% exercise="noise_scale"
def noise_scale(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    ### BEGIN SOLUTION
    gradient = (big_batch * norm2_big - small_batch * norm2_small) / (big_batch - small_batch)
    noise = (norm2_small - norm2_big) / (1 / small_batch - 1 / big_batch)
    return noise / gradient
    ### END SOLUTION


# %% [markdown]
# ### Does it predict the critical batch size?
#
# Now the whole experiment, with both halves independent of each other.
#
# 1. Several processes train one small network together. Each computes a gradient on its own images. We record its
#    squared length, and the squared length of the average.
# 2. One process trains the same network from the same weights to the same test loss, with several batch sizes. For each
#    of them it searches for the rate that needs the fewest updates. It tries one rate after the other, until the next
#    lower one and the next higher one are both worse. Then it fits the formula from above,
#    $S = S_{\min}(1 + B_{\text{crit}} / B)$. If theory is right, the fitted $B_{\text{crit}}$ and $\mathcal B$ have the
#    same order of magnitude.
#
# **What to look at:** on the left, where the line bends, and whether the dotted line (the noise scale, from the first
# half) is near the dashed one (from the second). On the right, what the noise scale does while the run goes on.
#
# **Guess first.** At the critical batch size a run needs twice as many updates as with very large batches. Which batch
# size is that, for this small network? Write a number into the next cell.

# %%
my_guess = None  # a number of images

# %%
result = saved("C28")
compare("critical_batch", my_guess)

# %% [markdown]
# The workers of the first half have recorded both squared lengths. Does your function find the noise scale of the
# figure in them?

# %%
for run in result.runs["noise"]:
    small, big = np.mean(run["small"]), np.mean(run["big"])
    yours = noise_scale(c28.WORKER_BATCH, run["size"] * c28.WORKER_BATCH, small, big)
    print(f"squared lengths {small:.3f} and {big:.3f}: your function says {yours:.0f} images")

# %% [markdown]
# What a batch size costs, in the run of the first seed. Follow the last two columns from the top down: from which batch
# size on do the updates hardly fall any more, while the images grow?

# %%
sizes, updates = c28.measured(result.runs)
rates = [c28.best(result.runs[f"batch-{size}"][0])[0] for size in sizes]
rows = "\n".join(
    f"| {size:,} | {rate:.3f} | {count:.0f} | {round(count) * size:,} |"
    for size, rate, count in zip(sizes, rates, updates[0], strict=True)
)
Markdown("| batch size | best rate | updates | images |\n|---:|---:|---:|---:|\n" + rows)

# %% [markdown]
# How far may you trust it?
#
# - The noise scale is that of a **round** bowl. Real curvature differs between directions. We leave this out, so the
#   noise scale can be wrong by a factor. Here the two numbers of the figure, {{c28_critical}} and {{c28_noise}} images,
#   are not equal, and both are right in their order of magnitude. Expect no more.
# - The noise scale changes during training. It is small at first, because all images agree on the first thing to learn.
#   Later it tends to grow, though unsteadily (right panel), because what is left to learn differs from image to image.
#   What you measure for a run is an average over it.
# - Both squared lengths must be averaged over many updates *before* you divide. The estimate of $\lVert g \rVert^2$ is
#   a small difference of two large numbers; from a few batches it can even come out negative. Then the ratio says
#   nothing.
# - It is measured with **plain SGD**. The critical batch size is a property of the problem *and* of the optimizer. Adam
#   has a much larger one than SGD.
# - It holds with the best rate for each batch size. Keep one rate for all, and other curves come out. Notebook 05
#   takes that up, and returns to this experiment.

# %% [markdown]
# ## Summary
#
# - A batch's gradient is right on average. Its squared error is $\operatorname{tr} \Sigma / B$: averaging over more
#   images, or more workers, makes it more accurate, not less.
# - SGD does not come to rest. It stays at a distance of about $c \sqrt{\eta / B}$ from the minimum: lower the rate, or
#   enlarge the batch.
# - The gradient noise scale $\operatorname{tr} \Sigma / \lVert g \rVert^2$ can be had from lengths of gradients that
#   data-parallel training computes anyway. It tells the order of magnitude of the critical batch size, up to which
#   larger batches pay, for SGD.
#
# The lines to keep:
#
# ```python
# # squared lengths: one worker's gradient of b images, and the average of all workers, of B images
# noise = (small - big) / (1 / b - 1 / B)  # the trace of the covariance
# gradient = (B * big - b * small) / (B - b)  # the squared length without noise
# noise_scale = noise / gradient  # about the critical batch size, in images
# ```
#
# The lab of this lesson is notebook 11. It asks whether a large batch gets stuck where the
# gradient is zero.
#
# **Further reading:** Bottou, Curtis, Nocedal 2018 (arXiv:1606.04838) on what SGD can and cannot do. Zhang and others
# 2019 (arXiv:1907.04164) on the critical batch size of Adam. Merrill and others 2025 (arXiv:2505.23971) doubt that the
# noise scale stands for it in language models. Zhang and others 2024 (arXiv:2410.21676) find that it grows with the
# amount of data.
#
# <details><summary>Question 1: you lower the rate by a factor of 10 near the end of training, and the training loss
# suddenly falls. Why so suddenly?</summary>
#
# SGD had settled at its distance from the minimum, about $c \sqrt{\eta / B}$. With the lower rate that distance is
# smaller: the kicks are weaker, and the slope pulls the weights in. In steep directions, where gradients also tend to
# scatter most, that takes few updates even at the lower rate, hence the sudden fall; in flat ones it goes on slowly.
# The loss was not stuck for lack of direction but held up by noise. A larger batch at the same rate would have had the
# same effect.
#
# </details>
#
# <details><summary>Question 2: a colleague measures a noise scale of 500 images and plans to train with 64 GPUs of 256
# images each. What do you expect?</summary>
#
# The global batch is $64 \cdot 256 = 16384$ images, more than 30 times the noise scale. By $S = S_{\min}(1 +
# \mathcal B/B)$ the run needs about 3 % more updates than the least possible, and by $SB = S_{\min}(B + \mathcal B)$
# over 30 times the images. Four GPUs would need about one and a half times the updates of 64, on a sixteenth of the
# hardware. But ask when it was measured: late in training the noise scale is larger, and the large batch less wasteful.
#
# </details>
#
# <details><summary>Question 3: with the noise scale at 1,000, you estimate it once, from two batches of 8 and 16
# images. What is wrong with that?</summary>
#
# Both lengths are almost all noise: $\lVert g \rVert^2$ is one part in 126 of the squared length at 8 images, one in
# 64 at 16. Their difference hardly knows it, and a single pair of batches may well give a negative estimate. Take batch
# sizes nearer to the noise scale and further apart, and average over many updates before dividing.
#
# </details>
