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
# **Time:** about {{minutes_02}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 01 (gradients
# and their noise).
#
# In notebook 00 four **workers**, processes that share the images, trained one network. Each of them does what a single
# worker does. If four workers are not four times as fast, a part of the reason is already in one worker. So first look
# closely at one.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## The script runs
#
# This is what a training program does, again and again, in its simplest form:
#
# ![](drawings/one_step.svg)
#
# The program is called `cifar_single.py`. Let it run first, and read it afterwards. It starts as a process of its own,
# as it would in a terminal. Here it reads only a part of the images, so that the notebook is quick.

# %%
from lessons import horovodrun

lines = horovodrun("cifar_single.py", 1, epochs=epochs + 2, images=images, batch_size=64, seed=seed, device=device)

# %% [markdown]
# What do these losses mean? The network gives ten numbers for an image, one for each class. They are called **logits**,
# $z_j$. PyTorch's `cross_entropy` first turns them into probabilities, $p_i = e^{z_i} / \sum_j e^{z_j}$. This is the
# **softmax**. An example with three classes: the logits 2, 1 and 0 become the probabilities 0.67, 0.24 and 0.09. The
# loss of an image is $-\ln p$ of its right class. If the first class is right, that is $-\ln 0.665 = 0.41$. The loss of
# a batch is the mean over its images. Its unit is called **nats**, because the logarithm is the natural one.
#
# A network that knows nothing gives each of the ten classes a probability of one tenth. Its loss is $\ln 10$, and its
# accuracy is 10 %. Compare:

# %%
import math

print(f"ln 10 = {math.log(10):.3f}; in the first epoch: {lines[0]['train_loss']:.3f}, {lines[0]['test_accuracy']:.1%}")

# %% [markdown]
# <details><summary>May the network end with a softmax of its own?</summary>
#
# No. The loss would then see numbers between 0 and 1 as logits. Even a perfect network would give the right class a
# probability of only $e / (e + 9)$, which is 0.23. Its loss would still be 1.46, and the gradients would be smaller, so
# it would learn more slowly.
#
# </details>
#
# ## The script, read
#
# This is the whole program. Every later script in this course is this one with a few lines changed.

# %%
from lessons.cells.running import SOURCE

print((SOURCE / "cifar_single.py").read_text())

# %% [markdown]
# Read it as four parts.
#
# | lines | what they do |
# | --- | --- |
# | `args` to `manual_seed` | options, the device, and the seed: equal seeds give equal first weights |
# | `train, test` to `scheduler` | the data, the network, the optimizer, and a schedule that leaves the rate alone |
# | the loop | one shuffle an epoch, one update a batch, one line in `metrics.jsonl` |
# | `save` | writes the weights; if the program is stopped meanwhile, no incomplete file is left |
#
# `load` reads the images of CIFAR-10 into two tensors, one for training and one for tests. From there on, we select an
# image by its number. `shuffle` says in which order the images are used. It depends on the seed and the epoch alone. So
# several workers compute the same order, without sending each other a message:

# %%
from cifar import data

train, test = data.load(limit=images)
print(train.name, tuple(train.images.shape), train.images.dtype, train.labels[:8].tolist())
for epoch in (0, 1):
    print(f"the first images of epoch {epoch}: {data.shuffle(len(train), seed, epoch)[:8].tolist()}")

# %% [markdown]
# And this is the loop of an epoch:

# %%
import inspect

from cifar.training import train_epoch

print(inspect.getsource(train_epoch))

# %% [markdown]
# - `batches` cuts the order into pieces, and fetches the images of each piece. `augment` shifts and mirrors these images
#   at random. `normalise` subtracts the mean of CIFAR-10 and divides by its deviation.
#
# - `autocast` uses **bfloat16**, a number format of 16 bits, if the processor is fast with it. Otherwise it changes
#   nothing.
#
# - `zero_grad()` clears the old gradient. Otherwise `backward()` would add the new one to it, and old gradients would
#   push in old directions.
#
# - `wait_for_gradients` does nothing with one worker. Notebook 04 comes to it.
#
# - `scheduler.step()` is called once for each batch. So a schedule counts updates here, and not epochs.
#
# `norm=no_norm` means that the script's network has no batch normalisation. The experiments of this notebook use the
# same network with it. What batch normalisation does is the subject of notebook 06.

# %% [markdown]
# ## Should a lower loss not mean a higher accuracy?
#
# It is natural to watch the printed loss and to expect accuracy to follow. Three things stand between them.
#
# - **The split.** The loss is measured on the images that the network learns, the accuracy on others. A network can
#   learn its images by heart.
# - **The measure.** Accuracy asks which class comes first. Cross-entropy asks how sure the network is,
#   $-\ln p(\text{right class})$. If a network is very sure and wrong, a few such images are enough to make the mean
#   loss large.
# - **The moment.** The printed loss is a mean over the epoch, on distorted images, while the weights were changing.
#
# The middle one is quick to see. Two made-up networks and five images: `bold` is right more often.

# %%
import torch

modest = torch.tensor([0.60, 0.55, 0.60, 0.40, 0.45])  # probability of the right class; two classes
bold = torch.tensor([0.99, 0.99, 0.99, 0.99, 0.0001])
for name, right_class in (("modest", modest), ("bold", bold)):
    accuracy = (right_class > 0.5).float().mean()
    print(f"{name}: loss {-right_class.log().mean():.2f} nats, accuracy {accuracy:.0%}")

# %% [markdown]
# Now with real networks. We train the same network in five ways.
#
# - `plain` trains on the images as they are.
# - `short` trains for fewer epochs.
# - `distorted` shifts and mirrors the images at random.
# - `decayed` has **weight decay**: each update also makes the weights a little smaller.
# - `smoothed` has **label smoothing**: a fifth of the certainty is spread over all ten classes. So the network is asked
#   to be 82 % sure of the right class, and not 100 %.
#
# All five are judged in the same way, on undistorted images of both splits. **Guess first:** which of them has the
# lowest training loss, and which the highest test accuracy?
#
# **What to look at:** in each panel, whether the points fall from the upper left to the lower right. A *rank
# correlation* says how well two orders agree. Order the recipes by low loss, and then by high accuracy. If the two
# orders are equal, it is 1. If they have nothing to do with each other, it is near 0. If one is the reverse of the
# other, it is -1.

# %%
from benchmarks.claims.lesson_02 import c07_loss_and_accuracy as c07
from lessons import live, saved

saved_c07 = saved("C07")

# %% [markdown]
# `plain` has the lowest training loss, and `distorted` has the highest test accuracy. Five recipes make ten pairs. The
# next cell compares the recipes two by two. It prints the pairs in which the recipe with the lower loss has the lower
# accuracy. It leaves out differences that are not larger than those between seeds.

# %%
if saved_c07.seeds > 1 and not saved_c07.missing:
    for loss, accuracy in c07.PAIRS:
        wrong = c07.pairs(saved_c07.runs, loss, accuracy, agreeing=False)
        print(f"{loss} against {accuracy}:", "; ".join(f"{a} looks better than {b}" for a, b in wrong) or "none")
else:
    print("only one seed has been saved so far: no pair can be told from noise")

# %% [markdown]
# What follows for practice: compare runs by what you want, on images that they have not seen. Use the training loss for
# what it is good at: does it fall at all, is it finite, does it go down faster than with another rate?
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
# For small $B$ the speed grows in proportion to $B$. For large $B$ it approaches $1/c$. Half of that is reached at the
# **knee**, $B = t_0/c$. At three times the knee it is three quarters. For example, let $t_0$ be 20 ms and $c$ be 1 ms.
# Then the knee is at 20 images. An update of 20 images takes 40 ms, which makes 500 images per second. An update of 60
# images takes 80 ms, which makes 750. The limit is 1,000. So far above the knee, a larger batch is hardly faster. And
# you know from notebook 01 that above the critical batch size a run also needs more images in all.
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
# dotted line is the fitted knee. Is the measured speed there about half of the limit $1/c$?

# %%
measured = live("C16", device=device, seed=seed)["updates"][0]

# %%
_ = saved("C16")

# %% [markdown]
# Now the times of your own machine. (The dashed line in the figure belongs to the saved run, on another machine.) Your
# function finds $t_0$ and $c$ from the batches of up to 128 images. They predict a batch that the run did not have, so
# we can test the prediction:

# %%
from functools import partial

from benchmarks.instruments.step_timing import Stepper, seconds
from cifar.workers import use_device

short = [pair for pair in zip(measured["batches"], measured["seconds"], strict=True) if pair[0] <= 128]
t0, c = step_time(*map(list, zip(*short, strict=True)))
print(f"t0 = {1000 * t0:.1f} ms, c = {1000 * c:.3f} ms an image, knee at {t0 / c:.0f} images")
here = use_device(device)
pictures, labels = next(data.batches(train, data.shuffle(len(train), seed, 0), 100, data.augment))
took = seconds(partial(Stepper(here), data.normalise(pictures).to(here), labels.to(here)), here, repeats=10)
print(f"an update of 100 images: predicted {1000 * (t0 + 100 * c):.0f} ms, measured {1000 * took:.0f} ms")

# %% [markdown]
# Now use the line for a question of this course. A batch of 128 images is shared by $K$ workers. Each of them has
# $128/K$ images, and a processor of its own that is like yours. **Guess:** how many times as fast are eight workers,
# before they have exchanged a single number?

# %%
for size in (1, 2, 4, 8):
    update = t0 + c * 128 / size
    print(f"{size} worker(s): {1000 * update:.0f} ms an update, {(t0 + 128 * c) / update:.1f} times as fast as one")

# %% [markdown]
# **This is the first reason why $K$ workers are not $K$ times as fast:** an update takes $t_0 + cB/K$, and the part
# $t_0$ does not become smaller. On a GPU this is worse, because its $c$ is tiny and its $t_0$ is not. So the knee lies
# far to the right there.
#
# <details><summary>Your t0 is negative, or the prediction is far off. Why?</summary>
#
# Other programs were busy while the run was measured, or your function's largest batches decide too much. It makes the
# squared errors in seconds small. So the slow, large batches decide where the line lies, and its beginning may lie far
# from the small batches. That is why we left the largest ones out. The dashed line in the figure was fitted in another
# way: its errors in per cent are small, so small batches count as much as large ones. And the line knows nothing of the
# processor's caches. Where the numbers of a batch no longer fit in them, each image may take longer.
#
# </details>
#
# ## Where does the memory go?
#
# Inference can forget a layer's input as soon as the next layer has been computed. Training cannot. After the loss is
# known, the **backward pass** computes the gradients, from the last layer to the first. The gradient of a weight needs
# the *input* of its layer. For example, let a layer have one weight, $y = w x$, with the input $x = 3$. If the loss
# changes by 0.5 for each unit of $y$, then it changes by 0.5 · 3 = 1.5 for each unit of $w$. So $x$ is needed. The
# inputs of all layers are called **activations**. (The output of a layer is the input of the next one.) They have to
# wait in memory for the backward pass.
#
# One often reads another explanation, that each image needs a gradient of its own for all weights. It does not. Each
# image contributes to the gradient, and PyTorch adds the contributions during the calculation. It keeps only the sum,
# which has the shape of the weights, however many images there are:

# %%
layer = torch.nn.Linear(512, 10)
for size in (1, 64, 4096):
    layer.zero_grad()
    inputs = torch.randn(size, 512)
    layer(inputs).mean(0).sum().backward()
    print(f"{size} images: gradient {tuple(layer.weight.grad.shape)}, input kept {tuple(inputs.shape)}")

# %% [markdown]
# So there are two kinds of memory: what each *parameter* needs (the weight, its gradient, one average with momentum,
# two with Adam) and what each *image* needs. The experiment measures the peak of a fresh process for each batch size.
# It also adds up the activations that PyTorch keeps for the backward pass.
#
# **What to look at:** on the left, how steep the lines are. On the right, compare the bar of training with the two
# lowest bars: the activations, and a gradient for each image. Which of these two explains it?

# %%
from benchmarks.claims.lesson_02 import c17_training_memory as c17

memory = live("C17", device=device, seed=seed)

# %%
_ = saved("C17")

# %% [markdown]
# The memory is a line, too. So we can predict the peak of a batch that your run did not have:

# %%
each, fixed = c17.growth(memory["training"][0])
print(f"by your line updates of 1,000 images would peak at about {(fixed + 1000 * each) / 2**20:.0f} MiB")

# %% [markdown]
# The measured memory may grow faster than the activations alone. The rest are tensors that live for a moment only: a
# layer's output while it is computed, the error that comes back, the normalised copy of the image. When memory runs
# out, the batch is what to look at first. Workers share out the images, hence the activations; each of them still holds
# *all* the parameters, gradients and averages.
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
# Prefetching here takes a second thread, which prepares the next batch while the network computes. (PyTorch's
# `DataLoader` can take processes instead.)
#
# The experiment has four pipelines. Preparation and update have one thread each.
#
# | pipeline | how the images are prepared | network |
# | --- | --- | --- |
# | `vectorised` | a whole batch at a time, as in the scripts | the lessons' |
# | `loop` | image by image in Python, as a data set class with `__getitem__` does | the lessons' |
# | `cached` | distorted once and kept, and only fetched in each epoch | the lessons' |
# | `loop small network` | image by image in Python | hardly more than nothing |
#
# `cached` is the cheapest, but it shows the network the same version of each image in every epoch. The lab of this
# lesson says what is lost by that.
#
# **What to look at:** on the left, which colour is widest in each bar. In the middle and on the right, each pipeline
# has two bars, without prefetching and with it. A bar shows the measured speed, and a diamond shows the speed that was
# predicted from the stages alone. Does each bar end at its diamond? (Stars and outlines are your own run: its
# predictions and its speeds.)

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
# In turn, the times of the stages add up. With prefetching, the slower side decides, as long as a core is free for it.
# In the saved runs this fits within a few per cent for the lessons' network. For the small network, the predictions are
# too high. Its stages are so short that the time between them counts, and the formula leaves it out. Two rules come out
# of it.
#
# - **Measure the stages before you change one.** If the preparation is the slower side, a faster network gains nothing.
# - **Vectorise first, prefetch second.** In the figure, `loop` with prefetching is as fast as `vectorised`. But it
#   needs a second core for that. Prefetching hides what is shorter than the update. It does not make it cheaper: the
#   hidden work still takes a core, and with as many workers as cores there is none to spare. If no core is free, the
#   thread slows the network down by as much time as it saves. That is one reason why the course's scripts do without
#   one.
#
# ## Summary
#
# - `cifar_single.py` is: data as indices, a network, an optimizer, and a loop of updates. The next scripts change a few
#   of its lines.
# - Loss and accuracy are different questions, and training and test images different ones again. Judge by images that
#   the network has not seen.
# - $t = t_0 + cB$: below the knee $t_0/c$ an update wastes its time on overhead, far above it little more is gained.
# - Training needs memory for the activations, and so for each image; weights, gradients and averages cost the same for
#   any batch.
# - Stages in turn add up; overlapped, the slowest sets the pace, as long as they do not get in each other's way.
#
# The lines to keep:
#
# ```python
# for images, labels in data:
#     loss = cross_entropy(net(normalise(images)), labels)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
# ```
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
