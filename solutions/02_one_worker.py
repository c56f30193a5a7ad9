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
# **After this notebook you will be able to** say what each part of `cifar_single.py` does, predict how long an update
# takes and how much memory it needs, and find the stage that slows a training run down.
#
# **Time:** about {{minutes_02}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 01 (gradients
# and their noise).
#
# In notebook 00, four **workers** trained one network. A worker is a process that has its share of the images. Four
# workers may not be four times as fast. Part of the reason is already in one worker. So first look closely at one.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## The script runs
#
# This is what a training program does, again and again, in its simplest form:
#
# ![](drawings/one_step.svg)
#
# The program is `cifar_single.py`. Let it run first, and read it afterwards. It starts as a process of its own, as in a
# terminal. It reads only a part of the images, so that it is quick.

# %%
from lessons import horovodrun

lines = horovodrun("cifar_single.py", 1, epochs=epochs + 2, images=images, batch_size=64, seed=seed, device=device)

# %% [markdown]
# What do these losses mean? For each image, the network gives ten numbers, one for each class. They are called
# **logits**, $z_j$. PyTorch's `cross_entropy` turns them into probabilities, $p_i = e^{z_i} / \sum_j e^{z_j}$. This is
# the **softmax**. For example, with three classes, the logits 2, 1 and 0 become 0.67, 0.24 and 0.09. The loss of an
# image is $-\ln p$ of its right class. If the first class is right, the loss is $-\ln 0.665 = 0.41$. Its unit is called
# **nats**, because the logarithm is the natural one. The loss of a batch is the mean over its images.
#
# A network that knows nothing gives each of the ten classes a probability of one tenth. **Guess:** what are its loss
# and its accuracy?

# %%
import math

print(f"ln 10 = {math.log(10):.3f}; in the first epoch: {lines[0]['train_loss']:.3f}, {lines[0]['test_accuracy']:.1%}")

# %% [markdown]
# Such a network has the loss $\ln 10$ and an accuracy of 10 %. The printed loss is a mean over the first epoch, and
# ours is already better. The loss is measured on the training images, and the accuracy on the test images. (A lower
# loss does not always mean a higher accuracy. The lab, notebook 12, shows why.)
#
# ## The script, read
#
# This is the whole program. Every later script in this course is this one with a few lines changed.

# %%
from lessons.cells.launches.running import SOURCE

print((SOURCE / "cifar_single.py").read_text())

# %% [markdown]
# Read it as four parts.
#
# | lines | what they do |
# | --- | --- |
# | `args` to `manual_seed` | options, the device, and the seed: equal seeds give equal first weights |
# | `train, test` to `scheduler` | the data, the network, the optimizer, which makes the steps, and a scheduler |
# | the loop | one shuffle an epoch, one update a batch, one line in `metrics.jsonl` |
# | `save` | writes the weights; a stopped program leaves no incomplete file |
#
# The scheduler sets the learning rate of each update. Here it is always the same.
#
# ### The data
#
# `load` reads CIFAR-10: training images and test images, with their labels. We select an image by its number. `shuffle`
# gives the order of the images. The order depends only on the seed and the epoch. So several workers compute the same
# order, without a message:

# %%
from cifar import data

train, test = data.load(limit=images)
print(train.name, tuple(train.images.shape), train.images.dtype, train.labels[:8].tolist())
for epoch in (0, 1):
    print(f"the first images of epoch {epoch}: {data.shuffle(len(train), seed, epoch)[:8].tolist()}")

# %% [markdown]
# ### The loop
#
# This loop makes the updates:
#
# ```python
# for images, labels in data:
#     loss = cross_entropy(net(normalise(images)), labels)
#     optimizer.zero_grad()
#     loss.backward()
#     optimizer.step()
# ```
#
# In the script, `train_epoch` does this. (It stands in `source_code/cifar/training.py`.) These parts of the script
# and of this function are new:
#
# - `batches` cuts the order into pieces, and fetches the images of each piece.
# - `augment` distorts these images: it shifts and mirrors them at random. So the network sees a new version of each
#   image in every epoch, and learns it less easily by heart. A distortion must leave the label right. A mirrored truck
#   is a truck, but a mirrored arrow points the other way. Test images are never distorted, so that two tests of one
#   network give the same accuracy.
# - `normalise` subtracts the mean of CIFAR-10, and divides by its standard deviation.
# - `zero_grad()` clears the old gradient. Otherwise `backward()` would add the new one to it.
# - `scheduler.step()` comes once after each `optimizer.step()`. So the scheduler counts updates, and not epochs.
#
# What happens without `zero_grad()`? Take a single weight $x$ with the loss $\frac12 x^2$. Its gradient is $x$.
# **Guess:** does the weight come to rest at 0?

# %%
for cleared in (True, False):
    x, gradient, path = 1.0, 0.0, []
    for _ in range(10):
        gradient = x if cleared else gradient + x
        x = x - 0.5 * gradient
        path.append(f"{x:.2f}")
    print("with zero_grad():   " if cleared else "without zero_grad():", *path)

# %% [markdown]
# Without it, the weight swings around 0 and never rests: the old gradients still push when it has arrived. A lower rate
# only makes the swings slower. (Sometimes one wants to add. Four calls of `backward()` and one step are an update with
# a batch four times as large, if each loss is divided by four. With batch normalisation this is not quite the same.)
#
# ### The network, and the test
#
# The network is a small ResNet. Its layers are convolutions: they look for patterns in small windows of the image. Most
# networks of this kind have **batch normalisation** between the layers, which makes an answer depend on the other
# images of the batch. The script leaves it out (`norm=no_norm`), and notebook 06 explains it. (The
# measurements below use the same network with it.) If the processor is fast
# with numbers of 16 bits, called **bfloat16**, the script uses these in the network.
#
# After each epoch, `count_correct` counts the test images that the network classifies correctly. It needs two lines
# that a training loop does not have:
#
# - `net.eval()` makes each part of the network behave as in use and not as in training. Batch normalisation then stops
#   looking at the other images. (`train_epoch` sets the network back by `net.train()`.)
# - `with torch.no_grad():` keeps nothing for a gradient, which saves time and memory.
#
# <details><summary>What goes wrong if a test forgets net.eval()?</summary>
#
# With batch normalisation, an image gets another answer in another batch. In a batch of two images, the means over the
# batch say little, so the accuracy falls. And batch normalisation collects means for later use, so the test images
# would change the network.
#
# </details>

# %% [markdown]
# ## How long does an update take?
#
# One part of an update takes the same time for every batch: the start of each layer's computation, and the optimizer's
# pass over all weights. Each image adds its own work to that. The simplest model is a line,
#
# $$t(B) = t_0 + cB, \qquad \text{images per second} = \frac{B}{t_0 + cB}.$$
#
# For example, let $t_0$ be 20 ms and $c$ be 1 ms. An update of 20 images takes 40 ms, which makes 500 images per
# second. An update of 60 images takes 80 ms, which makes 750. The limit is $1/c$, here 1,000. Half of it is reached at
# the **knee**, $B = t_0/c$, here 20 images. At three times the knee it is three quarters.
#
# <details><summary>How does one measure the time on a GPU?</summary>
#
# Python only tells a GPU what to compute, and goes on at once. So wait for the GPU by `torch.cuda.synchronize()` before
# you read the clock. `loss.item()` waits, too: it needs the result.
#
# </details>
#
# Fit that line. Choose it so that the sum of the squared errors is smallest.
#
# <details><summary>A hint</summary>
#
# `np.polyfit(batches, seconds, 1)` finds such a line. It returns the slope first.
#
# </details>

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
# **What to look at:** the dots, the dashed line and the dotted line belong to our saved run, on another machine. The
# dashed line is its fitted $t_0 + cB$, and the dotted line its knee. On the left, see the flat part and the rising
# part. (Both axes are logarithmic there, so a straight line looks bent.) On the right, the speed stops growing. Is it
# about half as high at the knee?
#
# The stars are your own run. Do they jump up and down? Then another program was busy, so run the cell again.

# %%
from lessons import live, saved

measured = live("C16", device=device, seed=seed)["updates"][0]

# %%
saved_c16 = saved("C16")

# %% [markdown]
# Now your own machine. Your function finds $t_0$ and $c$ from the batches of up to 128 images. Then it predicts two
# batches that it has not seen: one of 100 images, and the largest of the run. Is the line right within a tenth? (If
# other programs were busy, your times may make no line. Then we go on with those of the saved run.)

# %%
from itertools import pairwise

from benchmarks.instruments.step_timing import seconds_of_update
from cifar.workers import use_device


def fitted(run: dict) -> list[float]:
    """[t0, c] of a run, from its batches of up to 128 images."""
    count = sum(batch <= 128 for batch in run["batches"])  # the batches come in order, the smallest first
    return step_time(run["batches"][:count], run["seconds"][:count])


whose = "your machine"
if any(small > 1.5 * large for small, large in pairwise(measured["seconds"])):  # a larger batch was much faster
    print("Your times jump up and down: another program was busy. We go on with the saved run.")
    measured, whose = saved_c16.runs["updates"][0], "the saved run"
t0, c = fitted(measured)
print(f"t0 = {1000 * t0:.1f} ms, c = {1000 * c:.3f} ms an image, knee at {t0 / c:.0f} images")
if whose == "your machine":
    pictures, labels = next(data.batches(train, data.shuffle(len(train), seed, 0), 100, data.augment))
    took = seconds_of_update(pictures, labels, use_device(device))
    print(f"an update of 100 images: predicted {1000 * (t0 + 100 * c):.0f} ms, measured {1000 * took:.0f} ms")
    if not 0.5 < (t0 + 100 * c) / took < 2:
        print("They are far apart. Probably another program was busy: run the cell with live() again, and this one.")
largest, seconds = measured["batches"][-1], measured["seconds"][-1]
print(f"an update of {largest} images: predicted {1000 * (t0 + largest * c):.0f} ms, measured {1000 * seconds:.0f} ms")

# %% [markdown]
# <details><summary>Your t0 is negative, or the prediction is far off, or the best speed lies above 1/c. Why?</summary>
#
# Other programs may have been busy. Or your function's largest batches decide too much. It makes the squared errors in
# seconds small, and the slow batches have the largest errors. So the line may miss the small batches. That is why we
# left the largest ones out. Then again, it does not know them: large batches can be a little faster than the line says,
# or slower. The processor's caches, its small fast memories, matter here. If a batch no longer fits in them, each image
# may take longer.
#
# </details>
#
# <details><summary>Can one predict the time without a run?</summary>
#
# Roughly, by counting. Take a convolution with windows of 3 × 3 from 64 to 64 channels. It has 9 · 64 · 64 weights, and
# it uses all of them at each pixel. So for each pixel it makes 9 · 64 · 64 multiplications, and as many additions. An
# image of 32 × 32 has 1,024 pixels. So it needs 2 · 9 · 64 · 64 · 1,024, or 75 million operations. On an image of 16 ×
# 16 it needs a quarter of them, and it has as many weights. The gradients need about twice as many, because there are
# some for the weights and some for the inputs. So training needs three times 75 million. A processor that makes 50
# billion of them a second needs 4.5 ms for this layer and one image. Such a count tells $c$, but not $t_0$, and real
# programs reach only a part of the speed that a data sheet names.
#
# </details>
#
# Now a question of this course. $K$ workers share a batch of 128 images. Each has $128/K$ images, and a processor like
# yours. **Guess:** how many times as fast are eight workers, before they have exchanged a single number?

# %%
for name, (fixed, each) in {whose: (t0, c), "the saved run": fitted(saved_c16.runs["updates"][0])}.items():
    times = {size: fixed + each * 128 / size for size in (1, 2, 4, 8)}
    print(f"{name}:", ", ".join(f"{size} workers {times[1] / times[size]:.1f} times as fast" for size in (2, 4, 8)))

# %% [markdown]
# **This is the first reason why $K$ workers are not $K$ times as fast:** an update takes $t_0 + cB/K$, and $t_0$ does
# not become smaller. On a GPU this is worse. Its $c$ is tiny, and its $t_0$ is not. So its knee is at a much larger
# batch.
#
# ## Where does the memory go?
#
# Each *parameter* needs memory: for the weight, for its gradient, and for the optimizer's averages. SGD with momentum
# keeps one of them, a running sum of the gradients. Adam keeps two, running means of the gradients and of their
# squares. That part is the same for every batch. Each *image* needs memory, too. For what? Here are two explanations.
#
# - **The inputs of the layers.** After the loss is known, the **backward pass** computes the gradients, from the last
#   layer to the first. The gradient of a weight needs the *input* of its layer. For example, let a layer have one
#   weight, $y = w x$, with the input $x = 3$. If the loss changes by 0.5 for each unit of $y$, it changes by 0.5 · 3 =
#   1.5 for each unit of $w$. So $x$ has to wait in memory. These inputs are called **activations**. A network that is
#   only used, and not trained (**inference**, or evaluation), can forget each of them after its layer. Then the memory
#   still grows with the images, but by less.
# - **A gradient for each image.** Each image contributes to the gradient. So it may need a gradient of its own for all
#   weights.
#
# The experiment measures the peak, which is the most memory that a process has held. It starts a fresh process for each
# batch size. It also adds up the activations that PyTorch keeps. **Guess:** which explanation is right?
#
# **What to look at:** on the left, how steep the lines are. On the right, compare the bar of training with the two
# lowest bars. They are the two explanations.

# %%
from benchmarks.claims.lesson_02 import c17_training_memory as c17

memory = live("C17", device=device, seed=seed)

# %%
_ = saved("C17")

# %% [markdown]
# There is no gradient for each image. PyTorch adds the contributions during the calculation, and keeps only the sum. It
# has the shape of the weights:

# %%
import torch

layer = torch.nn.Linear(512, 10)
for size in (1, 64, 4096):
    layer.zero_grad()
    inputs = torch.randn(size, 512)
    layer(inputs).mean(0).sum().backward()
    print(f"{size} images: gradient {tuple(layer.weight.grad.shape)}, input kept {tuple(inputs.shape)}")

# %% [markdown]
# So the memory is a line, too. A fixed part belongs to the parameters, and each image adds its activations. For
# example, a network has 1,000,000 weights, and each image needs 500,000 bytes of activations. With Adam, the fixed part
# has four numbers of 4 bytes for each weight: the weight, its gradient and two averages. That is 16 MB. A batch of 64
# images adds 32 MB.
#
# Suppose that a batch does not fit into the memory of one machine. **Guess:** do four workers need a quarter of the
# memory each? Write a function that says how many workers are needed.


# %% exercise="workers_needed"
from math import ceil


def workers_needed(weights: int, averages: int, activations: int, images: int, memory: int) -> int:
    """The smallest number of workers into whose memory the batch fits, or 0 if no number is enough."""
    ### BEGIN SOLUTION
    parameters = 4 * weights * (1 + 1 + averages)  # every worker has all of them
    fitting = (memory - parameters) // activations  # images
    return ceil(images / fitting) if fitting >= 1 else 0
    ### END SOLUTION


# %% [markdown]
# Now the network of this lesson. Fit a line to the peaks of your own run. Its slope is what an image adds. Take that as
# the activations. (It is a little more, because some tensors live for a moment only.) How many workers does a batch of
# 4,096 images need?

# %%
from math import ceil

weights = memory["training"][0]["weights"] // 4  # this entry is in bytes
each, fixed = c17.growth(memory["training"][0])
print(f"{weights:,} weights, {each / 2**20:.2f} MiB for an image, {fixed / 2**20:.0f} MiB fixed")
for mebibytes in (4096, 1024, 256, 64, 7):
    needed = workers_needed(weights, 2, round(each), 4096, mebibytes * 2**20)
    fitting = int((mebibytes * 2**20 - fixed) / each)  # images beside the fixed part of your run
    measured_too = ceil(4096 / fitting) if fitting >= 1 else 0
    print(f"with {mebibytes:4} MiB on each, workers needed: {needed or 'none is enough'}", end="; ")
    print(f"with the fixed part of your run: {measured_too or 'none is enough'}")

# %% [markdown]
# More workers need less memory each, but only for the images. Each worker still holds *all* the weights, gradients and
# averages. In this small network, they are small beside the activations. In a large language model, they are not. Then
# more workers do not help, and notebook 10 says what does.
#
# The fixed part of your run is larger than the parameters of your function, because PyTorch takes memory for its own
# work when it first computes. Where memory is short, this counts, as the last column shows. (1 MiB is 1,048,576 bytes.)
#
# When memory runs out, first look at how many images each worker has in an update.
#
# <details><summary>The memory grows with every update. What may be wrong?</summary>
#
# For the backward pass, PyTorch records how a loss was computed, and the loss holds on to this record. `backward()`
# frees the activations in it, but not all of the record. If you add up the losses themselves, the sum holds on to all
# their records. So add up the numbers `loss.item()`. (Or add up `loss.detach()`, as the script does. It lets go of the
# record, too, and does not wait for a GPU.)
#
# </details>
#
# ## Who sets the pace?
#
# Training is a production line with four stages: fetch, distort, normalise, update. The first three prepare a batch.
# Without prefetching, each stage waits for the one before. With **prefetching**, the next batch is prepared while the
# network computes:
#
# ![](drawings/prefetching.svg)
#
# In the exercise, *all* stages may work at the same time, each on another batch (`overlapped`). How many images a
# second come out, with and without it?


# %% exercise="pipeline_rate"
def pipeline_rate(seconds: list[float], batch: int, overlapped: bool) -> float:
    """Images a second that pass through stages which take so many seconds for a batch."""
    ### BEGIN SOLUTION
    return batch / (max(seconds) if overlapped else sum(seconds))
    ### END SOLUTION


# %% [markdown]
# In the experiment, only *two* things run side by side. A second thread, a second line of work in the same process,
# prepares the next batch: it fetches, distorts and normalises. At the same time the network computes its update. (Each
# of the two has one core here, so an update takes longer than in the first experiment.) So your function gets two
# numbers below: the time of the three preparing stages together, and the time of the update. (PyTorch's `DataLoader`
# can use processes instead.) The experiment has five pipelines. Take two of them first.
#
# - `vectorised` prepares a whole batch at a time, as the scripts do.
# - `decoded` does the same, but each image comes from a JPEG file of 320 × 320 pixels. This is like training on
#   photographs: a file has to be decoded and made smaller before one has an image.
#
# **Guess:** which of the two gains more from prefetching, in per cent?
#
# **What to look at:** the first two rows. On the left, which side is longer in each bar: the update, or the three
# preparing stages? On the right, each pipeline has two bars, without and with prefetching. A bar is the measured time.
# A diamond is the time predicted from the stages on the left. Does each bar end at its diamond? (The figure shows our
# saved runs.)

# %%
stages = live("C19", device=device, seed=seed)

# %%
_ = saved("C19", own=False)

# %% [markdown]
# The answer is `decoded`. Prefetching can hide only the shorter of the two sides. In `decoded` both sides are long, so
# the whole update hides behind the decoding. In `vectorised` the preparing is short, so there is little to hide. (At
# most, prefetching doubles the speed. It does so if both sides are equally long.)
#
# The other three rows have one short side, too:
#
# - `loop` prepares image by image in Python, as many programs do it. Its preparing takes longer than that of
#   `vectorised`, and is still the short side.
# - `cached` distorts the images once, keeps them, and only fetches them. So the network sees the same version of each
#   image in every epoch, and can learn it by heart. Its preparing is the short side.
# - `loop small network` has hardly anything to compute, so its update is the short side.
#
# In our saved runs of `decoded`, preparation is the slower side. **Guess:** what would it gain from a GPU on which an
# update takes no time, with prefetching? The cell predicts your own machine's rates, and this one in the last row:

# %%
from IPython.display import Markdown

rows = ["| images a second | predicted | measured |", "| --- | --: | --: |"]
for arm in ("vectorised", "decoded"):
    run = stages[arm][0]
    *preparation, update = run["stages"].values()
    for name, overlapped in (("in_turn", False), ("prefetched", True)):
        said = pipeline_rate([sum(preparation), update], run["batch"], overlapped)
        rows.append(f"| {arm}, {name.replace('_', ' ')} | {said:.0f} | {run[name]:.0f} |")
on_such_a_gpu = pipeline_rate([sum(preparation), 0.0], run["batch"], True)
rows.append(f"| decoded, prefetched, on such a GPU | {on_such_a_gpu:.0f} | |")
Markdown("\n".join(rows))

# %% [markdown]
# In turn, the times of the stages add up. With prefetching, the slower side decides, if a core is free for it. In the
# saved runs this fits within a few per cent for the lessons' network. For the small network the predicted rates are too
# high (and in the figure, the predicted times too short). Its stages are so short that the time between them counts.
# Two rules follow.
#
# - **Measure the stages before you change one.** With prefetching, `decoded` gains nothing from a faster network or
#   from a GPU. The decoding takes as long as before. It gains from faster decoding, or from more threads that decode.
#   (On your machine the update may be the slower side. Then a faster network helps, until the decoding is slower.)
# - **Vectorise first (prepare a whole batch at a time), prefetch second.** In the figure, `loop` with prefetching is as
#   fast as `vectorised`, but it needs a second core. Prefetching hides work. It does not remove it. With as many
#   workers as cores, no core is free. Then the thread slows the network down by as much time as it saves. That is one
#   reason why the course's scripts do not prefetch.
#
# ## Summary
#
# - `cifar_single.py` has data, a network, an optimizer, and a loop of updates. The next scripts change a few of its
#   lines.
# - A loss of $\ln 10$ is what a network without any knowledge has.
# - $t = t_0 + cB$: below the knee $t_0/c$, most of an update is the fixed part $t_0$. Far above it, a larger batch is
#   hardly faster.
# - Activations need memory for each image, and workers share the images. Weights, gradients and averages need the same
#   for any batch, on every worker.
# - In turn, the times of the stages add up. With prefetching, the slower side sets the pace, if a core is free.
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
# The lab of this lesson is notebook 12. It asks whether a lower loss means a higher accuracy. It also distorts the
# images in five ways, and it tries to train on the mean image of a batch.
#
# ## Questions
#
# <details><summary>Question 1. You halve the per-worker batch, and an update takes nearly as long as before. On which side of the knee are you?</summary>
#
# To the left of it: $t_0$ is larger than $cB$. Two workers with half the batch each would take nearly as long as one
# with all of it, before they have exchanged a single byte.
#
# </details>
#
# <details><summary>Question 2. A run stops for lack of memory. You replace Adam by plain SGD, which keeps no averages. It stops again. Why?</summary>
#
# The optimizer's averages are counted by parameter. This network's parameters are small beside the activations of a
# large batch. A smaller per-worker batch helps.
#
# </details>
#
# <details><summary>Question 3. May the network end with a softmax of its own?</summary>
#
# No. The loss would then see numbers between 0 and 1 as logits. Even a perfect network would give the right class a
# probability of only $e / (e + 9)$, which is 0.23. Its loss would still be 1.46, and the gradients would be smaller, so
# it would learn more slowly.
#
# </details>
