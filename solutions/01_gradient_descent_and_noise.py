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
# **After this notebook you will be able to** say how far a batch's gradient is from the gradient of all images, and
# predict where stochastic gradient descent (SGD) ends. You will also be able to measure with a few workers how noisy
# gradients are, and to decide from this how large a batch is worth its images.
#
# **Time:** about {{minutes_01}} minutes, and about one minute of waiting on 2 CPU cores. **Builds on:** 00, and a
# little PyTorch.
#
# A colleague has 64 GPUs. How many of them should share one update? A **worker** is a process that trains on its own
# share of the images, often with a GPU of its own. When several workers average their gradients, the mathematics sees
# only one thing: a larger batch. So first ask what a larger batch does to an update.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import numpy as np
import torch

from benchmarks.claims.lesson_01 import c28_critical_batch_size as c28
from benchmarks.experiment.plots import PURPLE
from cifar.data import load
from lessons import compare, live, panels, saved, show

_ = torch.manual_seed(seed)

# %% [markdown]
# ## All the data, or a part of it?
#
# A network with weights $w$ has a loss $\ell_i(w)$ for image $i$, and $L(w) = \frac1N \sum_i \ell_i(w)$ for all $N$
# images. **Gradient descent** uses all of them for each update:
#
# $$ w \leftarrow w - \eta\, g, \qquad g = \nabla L(w) = \frac1N \sum_{i=1}^{N} \nabla \ell_i(w). $$
#
# $\eta$ is the **learning rate**, in this course just the *rate*. **Stochastic gradient descent** (SGD) draws $B$
# images at random for each update and uses their mean gradient $\hat g$ instead. So an update needs $B$ images, and not
# $N$.
#
# Take a model with only two weights. Then we can draw its loss as a surface. It predicts the brightness of the middle
# of an image from the brightness of its left edge and of its right edge. Each brightness is shifted and scaled to mean
# 0 and standard deviation 1.

# %%
train, test = load(limit=images)
columns = train.images.double().mean(dim=(1, 2))  # (N, 32): the mean of each column of pixels
left, middle, right = (part.mean(1) for part in columns.split([8, 16, 8], dim=1))
left, middle, right = ((part - part.mean()) / part.std() for part in (left, middle, right))
inputs, targets = torch.stack([left, right], dim=1), middle
print("inputs", tuple(inputs.shape), "targets", tuple(targets.shape))

# %% [markdown]
# With half the mean squared error as the loss, the gradient is one line. The two methods differ only in the rows that
# they give to this function.


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
# Gradient descent gives the same answer each time. SGD gives another one each time, near it. Is SGD just not finished?
# Would more updates help? Decide before you read on.
#
# More updates do not help. At the minimum $g$ is zero, but $\hat g$ is not, because a few images never agree exactly.
# So every update is a small kick, and the full gradient pulls back. In the end kicks and pull balance. From then on,
# the distance from the minimum $w^*$ stays about the same.
#
# Move the dials. What does a higher rate do to this distance? What does a larger batch do? Can you change both, so that
# the distance stays the same?

# %%
from lessons import explore

explore("cloud")

# %% [markdown]
# A higher rate makes the cloud wider, and a larger batch makes it narrower. Four times the rate *and* four times the
# batch leave it as it was:
#
# ![](drawings/noise_ball.svg)
#
# For small rates, the typical distance is
#
# $$ \sqrt{\mathbb E \lVert w - w^* \rVert^2} \approx c\, \sqrt{\eta / B} $$
#
# $\mathbb E$ stands for a mean, here over many updates. The number $c$ depends on the problem alone. Half the rate
# makes the distance $\sqrt 2$ times smaller. Twice the batch does the same. The loss near a minimum grows with the
# square of the distance. So the extra loss is proportional to $\eta / B$, without the root.
#
# <details><summary>Where does the root come from?</summary>
#
# Take a single weight. Let $h$ be the **curvature** of the loss: it says how quickly the gradient changes. Let
# $\sigma^2$ be the variance of one image's gradient. An update multiplies the distance by $1 - \eta h$, and adds noise
# of variance $\eta^2 \sigma^2 / B$. Both effects balance when the variance of the weight is about
# $\eta \sigma^2 / (2 h B)$. The distance is the root of this variance. Mandt et al. 2017 (arXiv:1704.04289) treat SGD
# that way, as a random process that has settled.
#
# </details>
#
# Is it so? An experiment lets SGD settle for three rates and three batch sizes. (A cell with `live` runs an experiment
# at a small size, for seconds or a minute. A cell with `saved` shows the full one, which we ran before.)

# %%
runs = live("C12", device=device, seed=seed)

# %% [markdown]
# The figure is of the full experiment, with more runs side by side, over all images. Your own run is drawn into it.
#
# **What to look at:** on the left the two paths. On the right the distance at which SGD stays. Do all nine points lie
# on one line? How steep is it?

# %%
result = saved("C12")

# %% [markdown]
# Three things to take along.
#
# - **Both come near the minimum, at very different prices.** The caption counts the images that each path used. Far
#   from the minimum a rough direction is enough, and it is cheap.
# - **Only the ratio $\eta / B$ matters** for where SGD ends, as long as the rate is small. Four workers make the batch
#   four times as large. Multiply the rate by four too, and SGD stays at the same distance. Notebook 05 asks whether you
#   should.
# - **The formula is for small rates.** On the logarithmic axes, its line has the slope one half, because of the root.
#   Look at the highest rate on the right: its points tend to lie above the line.

# %% [markdown]
# ## How wrong is the gradient of a batch?
#
# A user with two GPUs asks: is an average of gradients not less accurate than "the" gradient? What would you answer?
#
# Look at the formula of $g$ again. "The" gradient *is* an average, over all images. A batch's gradient is an average
# over fewer. Our model has only two weights, so we can draw a gradient as an arrow. Before you run the cell, guess: how
# much smaller is the cloud for 64 images than the cloud for 8?

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
# The arrow is the same in all three panels. How far from its tip does a batch end? Take the distance of each image's
# gradient from the mean gradient $g$. Square these distances, and average them. This number is the **noise** of a
# single image. Books write it $\operatorname{tr} \Sigma$, the trace of the covariance $\Sigma$: the sum of the
# variances of all coordinates. The mean of $B$ independent draws has a variance $B$ times smaller. So
#
# $$ \mathbb E \lVert \hat g - g \rVert^2 = \frac{\operatorname{tr} \Sigma}{B}. $$
#
# With 64 images the squared error is 8 times smaller than with 8, so the cloud is about $\sqrt 8 \approx 2.8$ times
# narrower.
#
# <details><summary>What if an image comes twice, or cannot come twice?</summary>
#
# An epoch is one pass over all images, in a shuffled order. In it no image comes twice. Then the squared error is
# smaller, by the factor $(N - B) / (N - 1)$. A batch of all $N$ images has no error. If a batch holds four copies of
# one image, these count as one image.
#
# </details>
#
# Your turn: compute that error from the gradients of all images. The formula gives it exactly.


# %% exercise="squared_error"
import numpy as np


def squared_error(gradients: list[list[float]], batch: int) -> float:
    ### BEGIN SOLUTION
    gradients = np.array(gradients)
    distances = np.square(gradients - gradients.mean(axis=0)).sum(axis=1)
    return float(distances.mean()) / batch
    ### END SOLUTION


# %% [markdown]
# Now a real network: the lessons' small ResNet (a network of convolutions, He et al. 2015), after a few updates. The
# experiment computes the gradient over all training images, and then the gradients of many batches. It draws their mean
# squared distance, divided by $\lVert g \rVert^2$. At 1, the squared error is as large as the squared length of the
# gradient itself.

# %%
networks = live("C03", device=device, seed=seed)["gradients"]

# %% [markdown]
# **What to look at:** does the line rise or fall? Is its slope the one of the formula, $-1$? At which batch size does
# it cross 1?

# %%
result = saved("C03")

# %% [markdown]
# The lines fall. An average over more images, also over more *workers'* images, is nearer to the gradient of all. So if
# two GPUs end at a lower test accuracy than one, the averaging is not why. Notebook 05 finds the reasons.
#
# Each line is one network at one moment. The networks began with different seeds. All lines fall equally fast, as the
# formula says. Their heights differ. A line lies high if the images disagree a lot (a large $\operatorname{tr}\Sigma$),
# or if the full gradient is short (a small $\lVert g\rVert^2$). The ratio of these two is the most useful number of
# this notebook.

# %% [markdown]
# ## How large may a batch be?
#
# Back to the colleague with 64 GPUs. A batch of twice the size costs twice as many images. What does it buy? There are
# two extremes.
#
# - **Small batches.** The noise is larger than the gradient, so a step goes mostly in a random direction. With twice
#   the images the squared error is half as large, and a step gains almost twice as much.
# - **Large batches.** There is almost no noise left. With twice the images a step gains almost nothing more.
#
# The border is where the noise of a batch is as large as the gradient:
# $\operatorname{tr} \Sigma / B = \lVert g \rVert^2$. In the figure above, each line crosses 1 there. This batch size is
# the **gradient noise scale** $\mathcal B$, in images (McCandlish et al. 2018, arXiv:1812.06162):
#
# $$ \mathcal B = \frac{\operatorname{tr} \Sigma}{\lVert g \rVert^2}. $$
#
# ### The price of a run
#
# A step by a noisy gradient lowers the loss by less than a step by the gradient of all images. How much less? Take the
# best rate for each batch size. At the border, where $B = \mathcal B$, a noisy step gains *half* of what a step without
# noise gains. So a run needs twice as many steps. Here the border is at 500 images. "Gains 1/5" means: a fifth of what
# a step without noise gains.
#
# ![](drawings/step_gain.svg)
#
# With a batch of a quarter of the border, a run needs five times as many steps, and with four times the border only
# 1.25 times as many. In general, a run needs
#
# - $1 + \mathcal B / B$ times the least number of updates. (Very large batches need the least number of updates.)
# - $1 + B / \mathcal B$ times the least number of images. (Very small batches need the least number of images.)
#
# The second line follows from the first, because each update has $B$ images.
#
# <details><summary>Where do the formulas come from?</summary>
#
# Imagine the loss as a bowl that is equally round in all directions. The step is $-\eta\, \hat g$. Let the curvature
# $h$ say how quickly the gradient changes. By the Taylor series, a step changes the loss in two ways. Downhill it gains
# $\eta \lVert g \rVert^2$ on average. But the gradient changes on the way, and this costs
# $\frac12 h \eta^2 (\lVert g \rVert^2 + \operatorname{tr} \Sigma / B)$ on average. The bracket is the mean of
# $\lVert \hat g \rVert^2$: noise makes a step longer. The difference is largest where its derivative by $\eta$ is zero.
# This is at the rate $\eta = \frac{1}{h\,(1 + \mathcal B / B)}$. With this rate the gain is
# $\frac{\lVert g \rVert^2}{2h} \cdot \frac{1}{1 + \mathcal B / B}$. So each step gains the share
# $\frac{1}{1 + \mathcal B / B}$ of the most that a step can gain, and the run needs $1 + \mathcal B / B$ times as many
# steps. If $S_{\min}$ is the least number of updates, this is $S = S_{\min} (1 + \mathcal B / B)$ updates, and so
# $S B = S_{\min} (B + \mathcal B)$ images. McCandlish et al. 2018 derive it for any bowl.
#
# </details>
#
# Let the noise scale be 500 images, and let each GPU compute 256 images. What do 1, 4 and 64 GPUs need? Decide which
# you would take, before you run the cell.

# %%
from lessons.cells.plots.price import show_price

border, per_gpu = 500, 256  # images: the noise scale, and the batch of one GPU


def price(batch):
    """The updates and the images of a run, each divided by the least that is possible."""
    return 1 + border / batch, 1 + batch / border


show_price(price, border, per_gpu)
for gpus in (1, 2, 4, 16, 64):
    updates, used = price(gpus * per_gpu)
    print(f"GPUs: {gpus:2}   updates: {updates:.2f} times the least   images: {used:5.2f} times the least")

# %% [markdown]
# - **Far below the noise scale** twice the batch means half the updates and the same number of images: a perfect
#   bargain.
# - **Far above it** twice the batch means the same number of updates and twice the images.
# - **At the noise scale** a run needs twice the least number of both. The batch size at which this happens is called
#   the **critical batch size**. So by this theory it is equal to the noise scale. Later you will see whether that is
#   true.
#
# Updates are what you wait for, and images are what you pay for. So the colleague should let two to four GPUs share one
# update. Four need half the updates of one. All 64 need only a third less than four, and they use eleven times as many
# images. The other 60 GPUs can train other networks. But this answer holds for a noise scale of 500. Somebody has to
# measure it.
#
# ### Measuring it with workers
#
# At every update, $g$ over all images costs too much. But $K$ workers already have what we need. Each has a gradient of
# its own $b$ images. (Each must draw other images: with equal seeds all would draw the same, and the average would be
# no better than one gradient.) Then an all-reduce, an exchange after which all have the same result, gives the
# average: a gradient of $Kb$ images.
#
# Look at the lengths. $\hat g$ is $g$ plus noise. The noise points along $g$ as often as against it, so in the mean it
# makes $\hat g$ neither longer nor shorter along $g$. But its own squared length is added. In the mean over many
# batches:
#
# $$ \mathbb E \lVert \hat g_B \rVert^2 = \lVert g \rVert^2 + \frac{\operatorname{tr} \Sigma}{B}. $$
#
# Put in $B = b$ and $B = Kb$. These are two equations with two unknowns.


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
# **Guess first.** At the critical batch size a run needs twice as many updates as with very large batches. Which batch
# size is that, in a real training of a small network? (The 500 above was only an example.) Write a number into the next
# cell.

# %%
my_guess = None  # a number of images

# %% [markdown]
# Now the experiment looks for this number in two independent ways.
#
# 1. **From the noise.** Several processes train one small network together. Each computes a gradient on its own images.
#    We record its squared length, and the squared length of the average. This gives the noise scale $\mathcal B$.
# 2. **From the updates.** One process trains the same network from the same weights to the same test loss, with several
#    batch sizes. For each of them it searches for the rate that needs the fewest updates. Then it fits the formula
#    above, in which the updates are the least number times $1 + B_{\text{crit}} / B$. This gives the critical batch
#    size $B_{\text{crit}}$.
#
# **What to look at:** on the left, where does the line bend? Is the dotted line (the noise scale) near the dashed one
# (the critical batch size)? On the right, what does the noise scale do during the run?

# %%
result = saved("C28")
compare("critical_batch", my_guess)

# %% [markdown]
# The workers have recorded both squared lengths. Give them to your function. Does it return the noise scale of the
# figure?

# %%
for run in result.runs["noise"]:
    small, big = np.mean(run["small"]), np.mean(run["big"])
    yours = noise_scale(c28.WORKER_BATCH, run["size"] * c28.WORKER_BATCH, small, big)
    print(f"squared lengths {small:.3f} and {big:.3f}: your function says {yours:.0f} images")

# %% [markdown]
# How far may you trust the noise scale? As an order of magnitude: it tells you whether to take some tens of images or
# some thousands.
#
# - Theory assumes a **round** bowl. A real loss is steeper in some directions than in others, so the noise scale can be
#   wrong by a factor. The two numbers of the figure are {{c28_critical}} and {{c28_noise}} images: not equal, but near.
# - The noise scale changes during training. It is small at first, because all images agree on the first thing to learn.
#   Later it tends to grow, though unsteadily (right panel). What you measure for a run is an average.
# - Average both squared lengths over many updates *before* you divide. Question 3 asks why.
# - It is valid for **plain SGD with the best rate for each batch size**. Adam, another optimizer (notebook 05), has a
#   much larger critical batch size. With one rate for all batch sizes, other curves come out. Notebook 05 returns to
#   this.
#
# And the colleague with 64 GPUs? If they trained *this* small network, one GPU with 256 images would already be beyond
# the critical batch size. A second GPU would save few updates. So measure the noise scale of your own network first.

# %% [markdown]
# ## Summary
#
# - A batch's gradient is right on average. Its squared error is $\operatorname{tr} \Sigma / B$. More images, or more
#   workers, make it more accurate, not less.
# - SGD does not come to rest. It stays at a distance of about $c \sqrt{\eta / B}$ from the minimum. To come nearer,
#   lower the rate or enlarge the batch.
# - The gradient noise scale is $\operatorname{tr} \Sigma / \lVert g \rVert^2$. Workers can measure it from lengths of
#   gradients that they compute anyway. It tells the order of magnitude of the critical batch size of SGD. Up to there,
#   larger batches pay.
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
# The lab of this lesson is notebook 11. It asks: can training with a large batch get stuck at a point where the
# gradient is zero?
#
# **Further reading:** Bottou, Curtis, Nocedal 2018 (arXiv:1606.04838) on what SGD can and cannot do. Zhang and others
# 2019 (arXiv:1907.04164) on the critical batch size of Adam. Merrill and others 2025 (arXiv:2505.23971) doubt that the
# noise scale stands for it in language models. Zhang and others 2024 (arXiv:2410.21676) find that it grows with the
# amount of data.
#
# <details><summary>Question 1: you lower the rate by a factor of 10 near the end of training, and the training loss
# suddenly falls. Why so suddenly?</summary>
#
# SGD had settled at its distance from the minimum, about $c \sqrt{\eta / B}$. With the lower rate the kicks are weaker,
# and the full gradient pulls the weights in. In steep directions this takes few updates, even at the lower rate.
# Gradients also tend to scatter most there. So the loss falls suddenly. In flat directions it goes on slowly. A larger
# batch at the same rate would have had the same effect.
#
# </details>
#
# <details><summary>Question 2: late in training, the colleague's noise scale is 8,000 images. Each GPU still computes 256. How many GPUs would you now let share one update?</summary>
#
# With 4 GPUs a run would now need $1 + 8000 / 1024$, about 9 times the least number of updates. With 64 GPUs, the batch
# has $64 \cdot 256 = 16384$ images, and $1 + 8000 / 16384$ is about 1.5. So 64 GPUs need six times fewer updates than
# four, and fewer than three times as many images. About 32 GPUs are at the critical batch size. It can therefore pay to
# begin with few GPUs, and to add more as the noise scale grows.
#
# </details>
#
# <details><summary>Question 3: with the noise scale at 1,000, you estimate it once, from two batches of 8 and 16
# images. What is wrong with that?</summary>
#
# Both lengths are almost all noise. $\lVert g \rVert^2$ is one part in 126 of the squared length at 8 images, and one
# in 64 at 16. A small random error in a length is larger than that. So the estimate may well be negative. Take batch
# sizes that are nearer to the noise scale and further apart. Average over many updates before you divide.
#
# </details>
