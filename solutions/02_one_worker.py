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
# # 02 One worker
#
# **After this notebook you will be able to** say what each part of `cifar_single.py` does, what its printed loss tells
# you and what it hides, predict how long an update takes and how much memory it needs, and find the stage that slows a
# training run down.
#
# **Time:** about {{minutes_02}} minutes, and about two more of waiting on 2 CPU cores. **Builds on:** 01 (gradients and
# their noise).
#
# Several workers will do what one does, each on its own part of the data. So first look closely at one. Whatever is
# slow, wasteful or misunderstood here will be so $K$ times.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import inspect

import numpy as np
import torch

from benchmarks.claims.lesson_02 import c07_loss_and_accuracy as c07
from benchmarks.claims.lesson_02 import c16_throughput as c16
from benchmarks.claims.lesson_02 import c17_training_memory as c17
from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from benchmarks.experiment.plots import panels
from cifar import data
from cifar.model import BootcampResNet, no_norm
from cifar.training import train_epoch
from lessons import horovodrun, live, saved, show
from lessons.cells.running import SOURCE

# %% [markdown]
# ## The script, line by line
#
# This is what a training program does, again and again, in its simplest form:
#
# ![](drawings/one_step.svg)
#
# And this is the whole program. Every later script in this course is this one with a few lines changed.

# %%
script = (SOURCE / "cifar_single.py").read_text()
print(script)

# %% [markdown]
# Read it as four parts.
#
# | lines | what they do |
# | --- | --- |
# | `args` to `manual_seed` | options, the device, and the seed: equal seeds give equal first weights |
# | `train, test` to `scheduler` | the data, the network, the optimizer, and a schedule that leaves the rate alone |
# | the loop | one shuffle an epoch, one update a batch, one line in `metrics.jsonl` |
# | `save` | the weights, as a file that appears whole or not at all |
#
# `load` reads all of CIFAR-10 into two tensors: bytes, not decoded files. From there on an image is an index.

# %%
train, test = data.load(limit=images)
print(train.name, tuple(train.images.shape), train.images.dtype, train.labels[:8].tolist())
order = data.shuffle(len(train), seed, epoch=0)
print("the first indices of the first epoch:", order[:8].tolist())

# %% [markdown]
# `shuffle` depends on the seed and the epoch alone. That looks like a detail. With several workers it is what lets
# them agree on one order without a word between them.
#
# `batches` cuts that order into pieces, fetches each piece by index, and passes the images through `augment`. It is a
# generator: a batch comes into being when the loop asks for it, which is where the last section of this notebook
# begins.
#
# The experiments below use the same network with batch normalisation. This layer shifts and scales the numbers inside
# the network (notebook 06 is about it), and it adds some time and memory to each image.

# %%
net = BootcampResNet(norm=no_norm)
pictures, labels = next(data.batches(train, order, 8, data.augment))
print("images", tuple(pictures.shape), pictures.dtype, "-> logits", tuple(net(data.normalise(pictures)).shape))
print(f"{sum(weight.numel() for weight in net.parameters()):,} weights")

# %% [markdown]
# And `train_epoch` is the loop that you know from every PyTorch tutorial. Two lines in it are less usual. `autocast`
# computes in **bfloat16**, a number format of 16 bits, where the processor is fast at it, and `wait_for_gradients` does
# nothing with one worker; it has its part in notebook 04.

# %%
print(inspect.getsource(train_epoch))

# %% [markdown]
# Now run it. It starts as a process of its own, as it would in a terminal.

# %%
lines = horovodrun("cifar_single.py", 1, epochs=epochs + 2, images=images, batch_size=64, seed=seed, device=device)

# %%
figure, (left, right) = panels(("epoch", "training loss (nats)"), ("epoch", "test accuracy (%)"))
number = [line["epoch"] for line in lines]
left.plot(number, [line["train_loss"] for line in lines])
right.plot(number, [100 * line["test_accuracy"] for line in lines])
for ax in (left, right):
    ax.set_xticks(number)
last = lines[-1]
text = f"{last['train_loss']:.2f} nats and {last['test_accuracy']:.1%} at the end, {last['images_per_s']:.0f} images/s"
show(figure, f"Two line plots by epoch, the loss and the accuracy: {text}.", f"What the script wrote: {text}.")

# %% [markdown]
# The loss is in **nats**: $-\ln p$ of the right class, with the natural logarithm, the mean over the images. A network
# that knows nothing gives each of ten classes a probability of one tenth: a loss of $\ln 10$ and an accuracy of 10 %.
# Compare.

# %%
print(f"ln 10 = {np.log(10):.3f}; after the first epoch: {lines[0]['train_loss']:.3f}, {lines[0]['test_accuracy']:.1%}")

# %% [markdown]
# ## Should a lower loss not mean a higher accuracy?
#
# It is natural to watch the printed loss and to expect accuracy to follow. Three things stand between them.
#
# - **The split.** The loss is measured on the images that the network learns, the accuracy on others. A network can
#   learn its images by heart.
# - **The measure.** Accuracy asks which class comes first. Cross-entropy asks how sure the network is,
#   $-\ln p(\text{right class})$. A network that is wrong on few images but very sure there pays for each of them.
# - **The moment.** The printed loss is a mean over the epoch, on distorted images, while the weights were changing.
#
# The middle one is quick to see. Two made-up networks and five images: `bold` is right more often.

# %%
modest = torch.tensor([0.60, 0.55, 0.60, 0.40, 0.45])  # probability of the right class; two classes
bold = torch.tensor([0.99, 0.99, 0.99, 0.99, 0.0001])
for name, right_class in (("modest", modest), ("bold", bold)):
    accuracy = (right_class > 0.5).float().mean()
    print(f"{name}: loss {-right_class.log().mean():.2f} nats, accuracy {accuracy:.0%}")

# %% [markdown]
# Now with real networks: five recipes that differ in length, distortions, **weight decay** (each update also makes the
# weights a little smaller) and **label smoothing** (it asks for 0.82 for the right class, and 0.02 for each of the nine
# others), all judged the same way, on undistorted images of both splits.
#
# **What to look at:** in each panel, whether the points fall from the upper left to the lower right. A *rank
# correlation* compares two orders (its rank is a place in an order, and not a worker). A rank correlation of 1 says
# that ordering the recipes by low loss orders them by high accuracy; 0 says that the two orders have nothing to do with
# each other.

# %%
_ = live("C07", device=device, seed=seed)

# %%
saved_c07 = saved("C07")

# %% [markdown]
# The next cell lists the pairs of recipes that a given loss puts in the wrong order, beyond what the seeds explain.

# %%
if saved_c07.seeds > 1 and not saved_c07.missing:
    for loss, accuracy in c07.PAIRS:
        wrong = c07.pairs(saved_c07.runs, loss, accuracy, agreeing=False)
        print(f"{loss} against {accuracy}:", "; ".join(f"{a} looks better than {b}" for a, b in wrong) or "none")
else:
    print("only one seed has been saved so far: no pair can be told from noise")

# %% [markdown]
# What follows for practice: compare runs by what you want, on images that they have not seen. Use the training loss
# for what it is good at: does it fall at all, is it finite, does it go down faster than with the other rate?
#
# With several workers a fourth thing comes in: the loss that a script prints may be one worker's. That is for notebook
# 03.
#
# ## How long does an update take?
#
# An update has work that does not depend on the batch (starting each layer's computation, the optimizer's pass over
# all weights) and work that each image adds. The simplest model of that is a line,
#
# $$t(B) = t_0 + cB, \qquad \text{images per second} = \frac{B}{t_0 + cB}.$$
#
# For small $B$ the speed grows in proportion to $B$. For large $B$ it approaches $1/c$. Half of that is reached at
# $B = t_0/c$, the **knee**. At three times the knee it is three quarters. From there on a larger batch buys little more
# speed, and you know from notebook 01 that beyond the critical batch size it costs images.
#
# Fit that line.

# %% exercise="step_time"
import numpy as np


def step_time(batches: list[int], seconds: list[float]) -> list[float]:
    """[t0, c]: the seconds of an update that do not depend on its batch, and the seconds that an image adds."""
    ### BEGIN SOLUTION
    x, y = np.array(batches, dtype=float), np.array(seconds, dtype=float)
    c = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return [float(y.mean() - c * x.mean()), float(c)]
    ### END SOLUTION


# %% [markdown]
# **What to look at:** on the left the flat part and the rising part, on the right where the speed stops growing. The
# dotted line is the fitted knee. Does the measured speed reach half of its best value there?

# %%
measured = live("C16", device=device, seed=seed)["updates"][0]

# %%
_ = saved("C16")

# %% [markdown]
# Your line through your own machine's times, beside the one that the figure shows:

# %%
yours = step_time(measured["batches"], measured["seconds"])
figures = c16.line(measured["batches"], measured["seconds"])
for name, (fixed, each) in (("yours", yours), ("the figure's", figures)):
    print(f"{name}: t0 = {1000 * fixed:.1f} ms, c = {1000 * each:.3f} ms an image, knee at {fixed / each:.0f} images")

# %% [markdown]
# They differ, with the same data. Yours makes squared errors in seconds small, and those of the largest batch outweigh
# all others: an error that is small beside them can be large beside $t_0$. The figure's line weighs relative errors. If
# yours has a negative $t_0$, that is why.
#
# The line knows nothing of the processor's caches. Where the numbers of a batch no longer fit in them, each image may
# take longer. See whether yours
# does. On a GPU the knee lies far to the right, because its $c$ is tiny and its $t_0$ is not. **This is
# the first reason why $K$ GPUs are not $K$ times as fast:** whoever divides a batch among workers divides $cB$ but not
# $t_0$, and moves each of them to the left on this curve.
#
# ## Where does the memory go?
#
# Inference can forget a layer's input as soon as the next layer has been computed. Training cannot. After the loss is
# known, the **backward pass** computes the gradients, from the last layer to the first. The gradient of a weight is an
# error times an *input*. So the inputs of all layers, which are called **activations**, have to wait in memory for the
# backward pass.
#
# One often reads another explanation, that each image needs a gradient of its own for all weights. It does not. Let
# $a_i$ be a layer's input for image $i$, and $\delta_i$ the error that comes back to it. They are the rows of $A$ and
# $\Delta$. The sum over the images is part of the same matrix product that computes the gradient,
#
# $$\frac{\partial L}{\partial W} = \frac{1}{B}\sum_i \delta_i\, a_i^\top = \frac{1}{B}\,\Delta^\top A,$$
#
# and what comes out has the shape of $W$ whatever $B$ is:

# %%
layer = torch.nn.Linear(512, 10)
for size in (1, 64, 4096):
    layer.zero_grad()
    layer(torch.randn(size, 512)).sum().backward()
    print(f"{size} images: gradient {tuple(layer.weight.grad.shape)}, input kept {(size, 512)}")

# %% [markdown]
# So there are two kinds of memory: what each *parameter* needs (the weight, its gradient, and with Adam two averages)
# and what each *image* needs. The experiment measures the peak of a fresh process for each batch size, and counts
# beside it the tensors that autograd holds between the forward and the backward pass.
#
# **What to look at:** the slopes on the left, and on the right which of the two lower bars explains the slope of
# training.

# %%
memory = live("C17", device=device, seed=seed)

# %%
_ = saved("C17")

# %% [markdown]
# A line again, so it predicts. A batch that your run did not have:

# %%
each, fixed = c17.growth(memory["training"][0])
print(f"by your line updates of 1,000 images would peak at about {(fixed + 1000 * each) / 2**20:.0f} MiB")

# %% [markdown]
# Where the measured slope lies above the activations alone, think of what lives for a moment only: a layer's output
# while it is computed, the error that comes back, the normalised copy of the image. When memory runs out, the batch is
# what to look at first. Workers share out the images, hence the activations; each of them still holds *all* the
# parameters, gradients and averages.
#
# ## Who sets the pace?
#
# Training is a production line: fetch by index, distort (shift and mirror at random), normalise, update. Either each
# stage waits for the one before. Or the next batches are prepared while the network computes, which is called
# **prefetching**. Suppose that the stages do not disturb each other. How many images a second come out of the line in
# each case?


# %% exercise="pipeline_rate"
def pipeline_rate(seconds: list[float], batch: int, overlapped: bool) -> float:
    """Images a second that pass through stages which take so many seconds for a batch."""
    ### BEGIN SOLUTION
    return batch / (max(seconds) if overlapped else sum(seconds))
    ### END SOLUTION


# %% [markdown]
# Prefetching in Python takes a thread and a queue. The thread can work beside the network because PyTorch lets go of
# Python's lock while an operation computes. A loop over single images is mostly Python between short operations, and it
# holds the lock. Here is all of it:

# %%
print(inspect.getsource(c19.prefetched))

# %% [markdown]
# The experiment has three ways to prepare the same images. `vectorised` is what the scripts do: a whole batch at a
# time. `loop` goes image by image in Python, as a data set class with `__getitem__` does. `cached` distorted everything
# once and for all, and only fetches. Its preparation takes the least time, but it shows the network the same version of
# each image in every epoch (the lab of this lesson says what is lost by that). The fourth pipeline feeds a network that
# is hardly more than nothing. Preparation and update have one thread each.
#
# **What to look at:** on the left, which colour is widest in each bar. On the right, whether the bars end at the
# diamonds, the predictions from the stages alone. Where two threads need Python's lock, they take turns, and less is
# gained than predicted. Look for it at the pipeline with the smallest network, and mind how far its runs scatter.

# %%
stages = live("C19", device=device, seed=seed)

# %%
_ = saved("C19")

# %% [markdown]
# Predict your own machine's rates. The three stages of the preparation run in one thread, so to the network they are
# one stage.

# %%
for arm, (run, *_) in stages.items():
    *preparation, update = run["stages"].values()
    sides = [sum(preparation), update]
    for name, overlapped in (("in_turn", False), ("prefetched", True)):
        said = pipeline_rate(sides, run["batch"], overlapped)
        print(f"{arm}, {name}: predicted {said:.0f} images/s, measured {run[name]:.0f}")

# %% [markdown]
# Three rules come out of it.
#
# - **Measure the stages before you change one.** Twice as fast a network gains nothing where the input is the slower
#   side. AlexNet, for instance, has few layers. It can ask for images faster than a disk and a JPEG decoder deliver
#   them.
# - **Vectorise first, prefetch second.** Prefetching hides what is shorter than the update. It does not make it
#   cheaper: the hidden work still takes a core, and with as many workers as cores there is none to spare. Then a
#   prefetching thread takes from the network what it gives to it. That is one reason why
#   the course's scripts do without one.
# - **Feed each worker its own slice.** A worker that fetches and distorts whole batches to use a part of them pays for
#   all of it. Notebook 03 measures that.
#
# ## Summary
#
# - `cifar_single.py` is: data as indices, a network, an optimizer, and a loop of updates. The next scripts change a few
#   of its lines.
# - Loss and accuracy are different questions, and training and test images different ones again. Judge by the test
#   images.
# - $t = t_0 + cB$: below the knee $t_0/c$ an update wastes its time on overhead, far above it nothing more is gained.
# - Training needs memory for the activations, and so for each image; weights, gradients and averages cost the same for
#   any batch.
# - Stages in turn add up; overlapped, the slowest sets the pace, as long as they do not get in each other's way.
#
# The lab of this lesson is notebook 12. It distorts the images in five ways, and it tries to train on the mean image of
# a batch.
#
# ## Questions
#
# <details><summary>Question 1. Halving the per-worker batch hardly changes how long an update takes. On which side of
# the knee are you, and what does that say about two workers that share this batch?</summary>
#
# To the left of it: $t_0$ outweighs $cB$. Two workers with half the batch each would take nearly as long for an
# update as one with all of it, before they have exchanged a single byte.
#
# </details>
#
# <details><summary>Question 2. A run stops for lack of memory. Adam is replaced by plain SGD, which keeps no averages,
# and it stops just the same. What was the matter?</summary>
#
# Averages are counted by parameter, and this network's parameters are small beside the activations of a large batch.
# A smaller per-worker batch helps; so does computing activations again in the backward pass instead of keeping them.
#
# </details>
#
# <details><summary>Question 3. After a change the training loss is higher than before. Is that bad?</summary>
#
# It depends on the change. Stronger distortions, label smoothing or weight decay raise it and may raise the test
# accuracy; a rate that is too high raises it as well. The test images tell which it was, over several seeds.
#
# </details>
