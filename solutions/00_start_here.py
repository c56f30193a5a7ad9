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
# # 00 Start here
#
# **After this notebook you will be able to** say what this course covers and in which order, what your machine can do,
# and start four workers that train one network together.
#
# **Time:** about {{minutes_00}} minutes on 2 CPU cores. **Builds on:** Python, and having trained some network before.
#
# ## A case
#
# Training a network on one processor is slow. So you start four **workers**: four processes, each with a processor of
# its own. Each has a copy of the network, and its own quarter of the images, its **shard**. After every **batch** of a
# few dozen images they average their gradients. They start equal, so all four stay equal. This is called **data
# parallelism**.
#
# Every log looks healthy. The loss falls. No error is printed. All four processors are busy. And in the end the network
# is *worse* than the one that a single worker trained. Nobody has changed the network or the images. Who did it? (In
# lesson 05 you see such runs, several of each.)
#
# | suspect | what may have happened | examined in |
# | --- | --- | --- |
# | the measurement | it was bad luck, or the number that was printed is one worker's | 01, 03 |
# | the average | averaging gradients loses something, or somebody added where the mean was meant | 03 and its lab |
# | the data | all workers saw the same images | 04, 05 |
# | the start | the workers began with different weights | 04 |
# | the batch | four workers take a quarter of the steps | 05 |
# | the rate | each step should be longer now, or a schedule came too late | 05, 06 |
# | the normalisation | each worker knows the statistics of its own images only | 06 |
#
# Each lesson takes up some of the suspects, and clears or convicts them by an experiment. In lesson 07 you examine a
# published table in which several of them were at work at once. In lesson 08 you write a program for four workers that
# gets everything right, and a grader watches what your workers really do. Lesson 09 leaves the one machine, and lesson
# 10 shows what you will meet at work.
#
# This course makes claims only that it can show. For each, you see the result of a full experiment: on test images,
# with its spread over several runs, its machine, and the command that repeats it. Many of them you also run yourself,
# small. The claims come from public discussions, courses and papers, which lesson 99 lists.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 2, 4096, 0, "auto"

# %% [markdown]
# ## The map
#
# ![](drawings/course_map.svg)
#
# | | notebook | minutes | you learn |
# | --- | --- | --- | --- |
# | 01 | Gradient descent and noise | {{minutes_01}} | why a batch's gradient is noisy, and how much |
# | 02 | One worker | {{minutes_02}} | a training program, line by line: where its time and memory go |
# | 03 | Data parallelism by hand | {{minutes_03}} | a parameter server, and a ring all-reduce by your own plan |
# | 04 | Horovod | {{minutes_04}} | the few lines that turn one worker into many, and how to look inside |
# | 05 | Why it converges worse | {{minutes_05}} | epochs against updates, rates, and the critical batch size |
# | 06 | Techniques | {{minutes_06}} | batch norm, scaled rates, warmup, momentum correction, LAMB |
# | 07 | Famous results re-examined | {{minutes_07}} | a published table, rebuilt one factor at a time |
# | 08 | Assignment | 90 | your own four-worker program, graded by what its workers do |
# | 09 | Beyond one machine | {{minutes_09}} | several hosts, a worker that dies, and how many workers pay |
# | 10 | What comes next | {{minutes_10}} | PyTorch's own DDP, techniques for slow links, and larger networks |
# | 11 to 15, 20 | Labs of lessons 01 to 05, and of 10 | | more experiments, for those who want to see them |
# | 98 | Glossary | | every term, with the lesson that explains it |
# | 99 | References | | every source, once |
#
# Go through them in order the first time: each uses the words of those before it. The minutes are estimated from the
# words, the code and the exercises. Where a cell says `live`, you wait for a small experiment, for seconds or a minute.
# Where it says `saved`, you see the full one at once.

# %% [markdown]
# ## Your machine
#
# Nothing here needs a GPU. If you have one, one worker uses it. Several workers use it if Horovod was built with CUDA.
# Set-up does that where PyTorch has CUDA and `nvcc` works. Otherwise several workers stay on the CPU.

# %%
import psutil
import torch

from cifar.support.environment import cores
from cifar.workers import autocast

gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
fast = autocast(torch.device("cuda" if gpus else "cpu")).__class__.__name__ == "autocast"
print(f"CPU cores: {cores()}   memory: {psutil.virtual_memory().total / 2**30:.0f} GiB   GPUs: {gpus or 'none'}")
print("bfloat16 arithmetic:", "yes, networks run faster" if fast else "no, networks run in float32")

# %% [markdown]
# With fewer cores than workers the workers take turns. They still compute what workers on machines of their own would
# compute, which is all that most experiments here need: *what* is learned does not depend on the clock. Where time
# itself is the question, the notebooks say how they keep it honest.
#
# ## Four workers, one network
#
# `horovodrun` starts the processes. Each runs the same script, `source_code/cifar_base.py`, and finds out from Horovod
# which one it is and how many there are. Its number is called its **rank**, from 0 on, and the number of workers is the
# **size**. The script also shifts and mirrors each image at random, and each worker does so in its own way. The images
# are CIFAR-10 (Krizhevsky 2009): 50,000 small training images of ten kinds of things, and 10,000 test images; to be
# quick we use the first few thousand of each. In a terminal you would type what the first line below shows.

# %%
from lessons import axes, horovodrun, show

lines = horovodrun("cifar_base.py", workers, epochs=epochs, images=images, batch_size=64, seed=seed, device=device)

# %%
figure, ax = axes("epoch", "test accuracy (%)")
accuracy = [0.1, *(line["test_accuracy"] for line in lines)]
ax.plot(range(len(accuracy)), [100 * value for value in accuracy])
ax.set_xticks(range(len(accuracy)))
last, seconds = lines[-1], sum(line["seconds"] for line in lines)
reached = f"{last['test_accuracy']:.1%}"
show(
    figure,
    alt=f"A line from 10 % (guessing) to {reached} test accuracy after {len(lines)} epochs.",
    caption=f"{workers} workers on {images:,} images: {reached} of the test images are right "
    f"after {seconds:.0f} s of training, at {last['images_per_s']:,.0f} images/s together. "
    "The point at epoch 0 is guessing among ten classes; it was not measured.",
)

# %% [markdown]
# That is a short run, so the accuracy is low. What matters is what happened: four processes each saw a quarter of the
# images. After every batch they agreed on one gradient, and each changed its weights with it. Such a step is called an
# **update**. At the end all four held the same network, and one of them wrote it down.
#
# **Why a command, and not a function?** A notebook is one process. Workers are processes of their own, and they have to
# be *launched*, not forked from the notebook: a forked copy of a process that has already used threads or a GPU may
# hang. All live runs in this course whose workers exchange something start that way.
#
# ## Why Horovod?
#
# Horovod is the library that averages the gradients here. Its last release is 0.28.1, of June 2023. Little has been
# added to it since, and this course changes a few lines of it so that it works with today's PyTorch. New programs use
# PyTorch's own `DistributedDataParallel` (**DDP**). For networks that do not fit on one GPU they use another part of
# PyTorch, which cuts the weights themselves into shards. Lesson 10 shows the first, and its lab the second.
#
# We teach with Horovod because it hides little. A few lines turn a program for one worker into one for many, and each
# line stands for one decision. The decisions are the same in DDP, and there most of them are made for you.
#
# ## If something fails
#
# - *Very slow:* close other programs. Four workers on two cores leave nothing for anybody else.
# - *A run hangs:* interrupt the cell (the square button). The workers are ended with it.
# - *CIFAR-10 is missing:* `python -m cifar.download` fetches it, and says what is wrong if it cannot.
#
# ## Summary
#
# - A worker is a process with a copy of the network; data parallelism means that each uses its shard of the data, and
#   all apply the mean gradient.
# - The rank says which worker this is, and the size says how many there are.
# - The course shows its claims with saved results. You repeat many of them yourself, in a small version.
#
# ## Questions
#
# <details><summary>Four workers with 64 images each make one update. How many images went into it?</summary>
#
# 256: the mean of four means over 64 images each is the mean over all of them. This is called the **global batch**.
#
# </details>
#
# <details><summary>The four workers shift and mirror their images by different random numbers, but hold equal networks.
# Why?</summary>
#
# Before the first update, worker 0 sends its weights to all others. From then on all apply the same mean gradient to
# the same weights.
#
# </details>
