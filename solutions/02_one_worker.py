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
# **Time:** about {{minutes_02}} minutes, and about one minute of waiting on 2 CPU cores. **Builds on:** 01 (gradients
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
# the **softmax**. For example, with three classes, the logits 2, 1 and 0 become 0.665, 0.245 and 0.090. The loss of an
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
# ## The loop
#
# At the heart of the program is this loop. There, `data` gives the images and the labels of one batch
# after the other. (In the cells below, `data` is the module that reads the images.)
#
# ```python
# for images, labels in data:
#     loss = cross_entropy(net(normalise(images)), labels)
#     optimizer.zero_grad()  # clears the old gradient
#     loss.backward()  # computes the gradient, and adds it to what is there
#     optimizer.step()  # changes the weights
# ```
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
# only makes the swings slower.
#
# <details><summary>When does one want to add gradients?</summary>
#
# Four calls of `backward()` and one step are an update with a batch four times as large, if each loss is divided by
# four. So a large batch fits into a small memory. With batch normalisation this is not quite the same.
#
# </details>
#
# ## What goes into the loop
#
# `load` reads CIFAR-10: training images and test images, with their labels. `shuffle` gives the order of the images, as
# numbers. The order depends only on the seed and the epoch. So several workers compute the same order, without a
# message:

# %%
from cifar import data

train, test = data.load(limit=images)
print(train.name, tuple(train.images.shape), train.images.dtype, train.labels[:8].tolist())
for epoch in (0, 1):
    print(f"the first images of epoch {epoch}: {data.shuffle(len(train), seed, epoch)[:8].tolist()}")

# %% [markdown]
# Three things happen to a batch before the network sees it:
#
# 1. `batches` cuts the order into pieces, and fetches the images of each piece.
# 2. `augment` distorts them: it shifts and mirrors them at random. So the network seldom sees the same version of an image twice
#    in a row, and learns it less easily by heart.
# 3. `normalise` subtracts the mean of CIFAR-10, and divides by its standard deviation.
#
# Here is the first training image, with five distorted versions of it. **Guess:** how many different versions can
# `augment` make of an image, if it shifts it by up to two pixels in each direction, and mirrors it or not?

# %%
from lessons.cells.plots.distortions import show_distortions

show_distortions(train.images[0], data.augment)

# %% [markdown]
# There are five shifts to the left or right (one of them is no shift), five up or down, and two directions:
# 5 × 5 × 2 = 50 versions. A
# distortion must leave the label right. A mirrored truck is a truck, but a mirrored arrow points the other way. Test
# images are never distorted, so that two tests of one network give the same accuracy.
#
# ## The network, and the test
#
# The network is a small ResNet. Its layers are convolutions: they look for patterns in small windows of the image.
# (With windows of 3 × 3 pixels, 16 input channels and 32 output channels, a convolution has 32 × 16 × 3 × 3 = 4,608
# weights. At each place of its output it uses each weight once, for a multiplication and an addition. Training needs
# the gradients, too, which takes about twice as long as the answers.) After each epoch, `count_correct` counts the test
# images that the network classifies correctly. The program divides once, by the number of all test images. (A mean over
# the accuracies of batches would be wrong: the last, smaller batch would count as much as the others.) It needs two
# lines that a training loop does not have:
#
# - `net.eval()` makes each part of the network behave as in use and not as in training. (The script's network has no
#   part that behaves differently. Most networks have one: with **batch normalisation**, an answer depends on the other
#   images of the batch. If all of them show cats, the layer takes away what they have in common. Notebook 06 explains
#   it.)
# - `with torch.no_grad():` keeps nothing for a gradient, which saves time and memory.
#
# <details><summary>What goes wrong if a test forgets net.eval()?</summary>
#
# With batch normalisation, an image would get another answer in another batch. In a batch of two images, the means over
# the batch say little, so the accuracy falls. And batch normalisation collects means in training, which `net.eval()`
# uses in place of those of the batch. So the test images would change the network. (`train_epoch` sets the network back
# by `net.train()`.)
#
# </details>
#
# <details><summary>In which numbers does the network compute?</summary>
#
# If the processor is fast with numbers of 16 bits, called **bfloat16**, the script uses these in the network. Otherwise
# it uses the usual 32 bits.
#
# </details>
#
# ## The whole program
#
# You know its parts now. Every later script in this course is this one with a few lines changed. The loop is in
# `train_epoch`, in the file `source_code/cifar/training.py`. **Read the script with a question.** Say that four workers
# run it. What must be different on each worker, what must be equal on all, and what should only one do?
#
# | | different, equal, or only one? |
# | --- | --- |
# | the order of all images | ? |
# | the images of an update | ? |
# | the first weights | ? |
# | the step of the optimizer | ? |
# | writing the files | ? |

# %%
from lessons.cells.launches.running import SOURCE

print((SOURCE / "cifar_single.py").read_text())

# %% [markdown]
# | lines | what they do |
# | --- | --- |
# | `args` to `manual_seed` | options, the device, and the seed: equal seeds give equal first weights |
# | `train, test` to `scheduler` | the data, the network, the optimizer, which makes the steps, and a scheduler, which sets the rate of each update |
# | `for epoch` | in each epoch: shuffle the images, make an update for each batch, test, and write a line to `metrics.jsonl` |
# | `save` | writes the weights; a stopped program leaves no incomplete file |
#
# <details><summary>Compare your answers</summary>
#
# The order of all images is equal, so that it can be shared out. The images of an update are different. The first
# weights and each step are equal: then the weights stay equal. Only one worker writes. Notebooks 03 and 04 show how.
#
# </details>

# %% [markdown]
# ## How long does an update take?
#
# One part of an update takes the same time for every
# batch: each layer's computation has to be started, and the optimizer goes over all weights. Each image adds its own
# work to that. The simplest model is a line,
#
# $$t(B) = t_0 + cB, \qquad \text{images per second} = \frac{B}{t_0 + cB}.$$
#
# For example, let $t_0$ be 20 ms and $c$ be 1 ms. An update of 20 images takes 40 ms, which makes 500 images per
# second. An update of 60 images takes 80 ms, which makes 750. The limit is $1/c$, here 1,000. Half of it is reached at
# the **knee**, $B = t_0/c$, here 20 images. At three times the knee it is three quarters.
#
# Now a question of this course. $K$ workers share a batch of 128 images. Each has $128/K$ images. **Guess:** how many
# times as fast are eight workers with this $t_0$ and $c$, before they have exchanged a single number?
#
# <details><summary>Compare your guess</summary>
#
# One worker needs 20 + 128 = 148 ms. Each of the eight has 16 images, and needs 20 + 16 = 36 ms. So they are only 4.1
# times as fast.
#
# </details>
#
# **This is the first reason why $K$ workers are not $K$ times as fast:** an update takes $t_0 + cB/K$, and $t_0$ does
# not become smaller. On a GPU this is worse. Its $c$ is tiny, and its $t_0$ is not. So its knee is at a much larger
# batch.
#
# How large are $t_0$ and $c$ on your machine? Write a function that fits the line to measured times. Choose it so that
# the sum of the squared errors is smallest.
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
# The next cells measure updates with batches of 1 to 512 images on your machine. (Most networks have batch
# normalisation, so the network of this experiment has it, too.) Then your function finds $t_0$ and $c$. It gets the
# batches of up to 128 images only, so that the larger ones can test it.

# %%
from lessons import live, saved
from lessons.cells.tasks.steady import steady

measured = live("C16", device=device, seed=seed)["updates"][0]


# %%
def fitted(run: dict, most: int = 128) -> list[float]:
    """[t0, c] of a run, from its batches of up to so many images."""
    count = sum(batch <= most for batch in run["batches"])  # the batches come in order, the smallest first
    return step_time(run["batches"][:count], run["seconds"][:count])


whose, mine = steady(measured)  # your run, or a saved one if another program was busy
t0, c = fitted(mine)
print(f"{whose}: t0 = {1000 * t0:.1f} ms, c = {1000 * c:.3f} ms an image, knee at {t0 / c:.0f} images")

# %% [markdown]
# **Predict:** how long does an update of 512 images take? Is your line right within a tenth?

# %%
for batch, seconds in zip(mine["batches"], mine["seconds"], strict=True):
    if batch > 128:
        print(f"{batch:4} images: predicted {1000 * (t0 + c * batch):.0f} ms, measured {1000 * seconds:.0f} ms")

# %% [markdown]
# **What to look at** in the figure: the stars are your run. The dots, the dashed line and the dotted knee are our saved
# run, on another machine. On the left, see the flat part and the rising part. (Both axes are logarithmic there, so a
# straight line looks bent.) On the right, the speed stops growing. Is it about half as high at the knee?

# %%
saved_c16 = saved("C16")

# %% [markdown]
# How many times as fast would several processors like yours be?

# %%
for name, (fixed, each) in {whose: (t0, c), "the saved run": fitted(saved_c16.runs["updates"][0])}.items():
    times = {size: fixed + each * 128 / size for size in (1, 2, 4, 8)}
    print(f"{name}:", ", ".join(f"{size} workers {times[1] / times[size]:.1f} times as fast" for size in (2, 4, 8)))

# %% [markdown]
# <details><summary>Your t0 is negative, or the prediction is far off. Why?</summary>
#
# Other programs may have been busy. Or the machine is not as simple as a line. The processor's caches, its small fast
# memories, matter: if a batch no longer fits in them, each image may take longer. Very small batches may also be slower
# than the line says.
#
# </details>
#
# <details><summary>How does one measure the time on a GPU?</summary>
#
# Python only tells a GPU what to compute, and goes on at once. So wait for the GPU by `torch.cuda.synchronize()` before
# you read the clock. `loss.item()` waits, too: it needs the result.
#
# </details>
#
# ## What memory does an image cost?
#
# A batch of 64 images needs more memory than a batch of one. What does each image need it for? Here are two
# explanations.
#
# - **The inputs of the layers.** The gradient of a layer may need what went into the layer. Then the inputs of all
#   layers must be kept, for each image. These inputs are called **activations**.
# - **A gradient for each image.** The gradient of a batch is a mean. Then there may be a gradient of all weights for
#   each image.
#
# Say that a network has 1,000,000 weights of 4 bytes, and that the inputs of its layers have 500,000 bytes for an
# image. What do 64 images add? By the first explanation they add 64 × 0.5 = 32 MB, and by the second 64 × 4 = 256 MB.
#
# The experiment measures the peak, which is the most memory that a process has held. It starts a fresh process for each
# batch size. **Guess:** which explanation is right?

# %%
memory = live("C17", device=device, seed=seed)

# %% [markdown]
# **What to look at:** on the left, how steep the lines are. (*Evaluation* uses the network without training it.) On the
# right, the two lowest bars are what the two explanations say. Which of them is nearer to the bar of training?
# (Training needs a little more than the activations, because some other
# tensors live for a moment.)

# %%
_ = saved("C17")

# %% [markdown]
# The first explanation is right. After the loss is known, the **backward pass** computes the gradients, from the last
# layer to the first. The gradient of a weight needs the input of its layer. For example, let a layer have one weight,
# $y = w x$, with the input $x = 3$. If the loss changes by 0.5 for each unit of $y$, it changes by 0.5 · 3 = 1.5 for
# each unit of $w$. So $x$ has to wait in memory.
#
# And there is no gradient for each image. PyTorch adds up the images' parts while it computes, and keeps only the sum.
# The sum has the shape of the weights:

# %%
import torch

layer = torch.nn.Linear(512, 10)
for size in (1, 64, 4096):
    layer.zero_grad()
    inputs = torch.randn(size, 512)
    layer(inputs).mean(0).sum().backward()
    print(f"{size} images: gradient {tuple(layer.weight.grad.shape)}, input kept {tuple(inputs.shape)}")

# %% [markdown]
# <details><summary>Why does the line of evaluation rise, too?</summary>
#
# A network that is only used, and not trained, needs no gradients. This is called **inference**, or evaluation. It
# holds the activations of one or two layers at a time, and forgets the others. So an image costs less.
#
# </details>
#
# ## What does every worker hold?
#
# So the memory is a line, too, as the time was. Its fixed part belongs to the *parameters*. Each needs memory for the
# weight, for its gradient, and for the optimizer's averages. SGD with momentum keeps one average, a running sum of the
# gradients. Adam keeps two, running means of the gradients and of their squares. With Adam, 1,000,000 weights need four
# numbers of 4 bytes each, which is 16 MB. A batch of 64 images adds 32 MB.
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
# Now the network of this lesson. Your `step_time` fits a line to any numbers, so it can also fit the peaks of your own
# run. The slope is what an image adds. How many workers does a batch of 4,096 images need? **Guess:** what happens if
# each has only 7 MiB? (1 MiB is 1,048,576 bytes.)

# %%
fixed, each = step_time(memory["training"][0]["batches"], memory["training"][0]["peaks"])  # bytes
weights = memory["training"][0]["weights"] // 4  # this entry is in bytes
print(f"{weights:,} weights, {each / 2**20:.2f} MiB for an image")
for mebibytes in (4096, 1024, 256, 64, 7):
    needed = workers_needed(weights, 2, round(each), 4096, mebibytes * 2**20)
    print(f"with {mebibytes:4} MiB on each, workers needed: {needed or 'none is enough'}")

# %% [markdown]
# With 7 MiB no number of workers is enough: the weights, the gradients and the averages alone need more. (A real
# process needs even more than your function says. Its fixed part is larger than the parameters, because PyTorch takes
# memory for its own work.)
#
# More workers need less memory each, but only for the images. Each worker still holds *all* the weights, gradients and
# averages. In this small network, they are small beside the activations. In a large language model, they are not. Then
# more workers do not help, and notebook 10 says what does.
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
# In the drawing, two things go on at a time. In the exercise, *all* stages may work at the same time, each on another
# batch (`overlapped`). How many images a second come out, with and without it?


# %% exercise="pipeline_rate"
def pipeline_rate(seconds: list[float], batch: int, overlapped: bool) -> float:
    """Images a second that pass through stages which take so many seconds for a batch."""
    ### BEGIN SOLUTION
    return batch / (max(seconds) if overlapped else sum(seconds))
    ### END SOLUTION


# %% [markdown]
# Is your formula right? We measured two pipelines. In them, only *two* things run side by side. A second thread, a
# second line of work in the same process, prepares the next batch: it fetches, distorts and normalises. At the same
# time the network computes its update. So your function gets two numbers: the time of the three preparing stages
# together, and the time of the update. (PyTorch's `DataLoader` can use processes instead. Two of them share the
# preparing, so it takes half as long, if there is a core for each.)
#
# - `vectorised` prepares a whole batch at a time, as the scripts do.
# - `decoded` does the same, but each image comes from a JPEG file of 320 × 320 pixels. This is like training on
#   photographs: a file has to be decoded and made smaller before one has an image.
#
# These are the times of a batch of 128 images, in our runs:
#
# | | the three preparing stages | the update |
# | --- | --: | --: |
# | `vectorised` | {{c19_vectorised_preparing}} ms | {{c19_vectorised_update}} ms |
# | `decoded` | {{c19_decoded_preparing}} ms | {{c19_decoded_update}} ms |
#
# **Predict with your formula:** which of the two gains more from prefetching, in per cent? And what would `decoded`
# gain from a GPU on which an update takes no time, with prefetching?
#
# **What to look at:** on the left, which side is longer: the update, or the three preparing stages? On the right, a bar
# is the measured time, without and with prefetching. A diamond is the time that *your function* says.

# %%
from lessons.cells.plots.prefetching import show_prefetching

show_prefetching(pipeline_rate)

# %% [markdown]
# Each bar on the right ends near its diamond, so the formula is right here. The answer is `decoded`. Prefetching can
# hide only the shorter of the two sides. In `decoded` both sides are long, so the whole update hides behind the
# decoding. In `vectorised` the preparing is short, so there is little to hide. (With two sides, prefetching at most
# doubles the speed. It does so if both are equally long.)
#
# Two rules follow:
#
# - **Measure the stages before you change one.** Go through the images without any update: this is the time of the
#   preparing. Make updates with one batch again and again: this is the time of the update. With prefetching, `decoded`
#   gains nothing from a GPU: the decoding is the slower side, and takes as long as before.
# - **Vectorise first, prefetch second.** (The lab shows a pipeline that is not vectorised.) Prefetching hides work. It
#   does not remove it, and it needs a core that is free. With as many workers as cores, there is none. That is one
#   reason why the course's scripts do not prefetch.
#
# The lab (notebook 12) measures your own machine, and three more pipelines.
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
# - Without prefetching, the times of the stages add up. With it, the slower side sets the pace, if a core is free.
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
# The optimizer's averages belong to the parameters. In this network, these need little memory beside the activations of
# a large batch. A smaller per-worker batch helps.
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
