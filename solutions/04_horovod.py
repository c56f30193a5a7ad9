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
# # 04 Horovod
#
# **After this notebook you will be able to** turn a training program for one worker into one for many, say what each
# changed line is for and what happens without it, and say how much of an exchange can be hidden.
#
# **Time:** about {{minutes_04}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 02
# (`cifar_single.py`) and 03 (the ring all-reduce, means of means).
#
# In the last notebook you averaged gradients by hand. In practice a library does it, while the backward pass goes on.
# Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) asks for a few changed lines. They are easy to copy, and easy
# to forget. So we take them one by one. (PyTorch's own DDP does the same, but it hides these lines. Lesson 10 shows
# it.)

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## MPI's words
#
# Horovod takes its words from MPI, the standard for programs on supercomputers since the 1990s. These are enough:
#
# | word | meaning |
# | --- | --- |
# | size | how many workers there are |
# | rank | this worker's number, from 0 to size - 1 |
# | local rank | its number among the workers on *its* machine |
# | broadcast | one worker's value goes to all |
# | all-reduce | all values are combined (mean, sum, maximum, ...), and all get the result |
# | all-gather | all get all values, in the order of the ranks |
# | barrier | nobody goes on before all are here |
#
# An example: two machines run two workers each. The size is 4. The ranks are 0 and 1 on the first machine, and 2 and 3
# on the second. The local ranks are 0 and 1 on each.
#
# The last four words are **collectives**: *every* worker must call them. If one does not, the others wait for ever: the
# program *hangs*. The usual cause is a collective inside `if hvd.rank() == 0`.
#
# ![](drawings/deadlock.svg)
#
# The next cell writes a whole program to a file. Before you run the one after it, write down the
# second line that worker 1 will print.

# %%
# %%writefile words.py
import os

import horovod.torch as hvd
import torch

hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()}, process {os.getpid()}")
mine = torch.tensor([10.0 * hvd.rank()])
last = hvd.size() - 1
print(
    f"mine {mine.tolist()}; mean {hvd.allreduce(mine).tolist()}, sum {hvd.allreduce(mine, op=hvd.Sum).tolist()}, "
    f"all-gather {hvd.allgather(mine).tolist()}, broadcast from the last {hvd.broadcast(mine, root_rank=last).tolist()}"
)
if hvd.rank() == 0:
    print("told by the launcher:", *(f"{name}={os.environ[name]}" for name in ("HOROVOD_RANK", "HOROVOD_SIZE")))

# %%
from lessons.cells.launches.programs import launch

print("\n".join(launch("horovodrun", "words.py", workers)))

# %% [markdown]
# No master gives orders. `horovodrun` starts the *same* program several times, and tells each process its number
# through environment variables. `hvd.init()` reads them, and the processes find each other. The data travels by MPI
# itself, by NVIDIA's **NCCL** between GPUs, or by Gloo, which needs only a network. We use Gloo. The program does not
# change.
#
# This notebook is one process, so here `hvd.size()` could only be 1. That is why we wrote a file and launched it.
#
# ## What changes
#
# `cifar_single.py` is notebook 02's program. `cifar_base.py` is the same program for several workers, and nothing more.
# Seven questions lead from one to the other. Each has an answer of one or two lines. You have met the answer to the
# first one above. The next sections take the others one by one. (A *shard* is a worker's part of the images.)
#
# | question | the lines that answer it | section |
# | --- | --- | --- |
# | Who am I? | `hvd.init()`, then `hvd.rank()`, `hvd.size()`, `hvd.local_rank()` | MPI's words |
# | Do all start with equal weights? | `hvd.broadcast_parameters(...)` | An equal start |
# | Which device is mine? | `use_device(..., hvd.local_rank(), hvd.local_size())` | A GPU each |
# | How do the weights stay equal? | `hvd.DistributedOptimizer(...)`: all apply the same mean gradient | Average or sum |
# | Which images are mine? | `shard(order, hvd.rank(), hvd.size())` | Shards |
# | What number do I report? | `hvd.allreduce(...)`: the mean loss, the sum of correct answers | Counting the test images |
# | Who writes files? | `if hvd.rank() == 0` | Break the lines |
#
# One line of Horovod's own list is missing: the learning rate, times the number of workers. The program is correct
# without it. It changes how training converges, so it waits for notebooks 05 and 06.
#
# ## An equal start
#
# ```python
# hvd.broadcast_parameters(net.state_dict(), root_rank=0)
# ```
#
# All workers apply the same gradient, so all make the same step. Two networks that begin equal stay equal. Two that
# begin apart stay apart.
#
# In a **broadcast** one worker sends its weights to all others. The script needs it, because each worker draws its
# first weights by another seed. (Only the shuffle has one seed for all. Would equal seeds do for the
# weights, too? That is Question 2.)
#
# <details><summary>What else must be broadcast after a restart?</summary>
#
# A **checkpoint** is a file with the state of a run. Often only rank 0 reads it after a restart. So broadcast the
# optimizer's state and the number of the epoch as well. Momentum and Adam's averages are a memory of earlier gradients.
# If only rank 0 has this memory, the same gradient makes different steps, and the networks drift apart. If only rank 0
# knows the epoch, the workers use different shuffles, and rank 0 ends first. The lab (notebook 14) shows a restart.
#
# </details>
#
# Is it really so? `sabotage` puts a bug into `cifar_base.py`, and runs it on four workers for some seconds. The first
# bug: no `hvd.broadcast_parameters`. The workers start with different weights. **Guess:** will the program crash?

# %%
from lessons.cells.tasks.sabotage import sabotage

rows = sabotage("no broadcast")

# %% [markdown]
# Nothing crashes, and the program prints no warning. Only the table shows the bug. It compares a **hash** of each
# worker's weights: a short number computed from all of them, so different weights show at once.
#
# ## A GPU each
#
# ```python
# device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
# ```
#
# A process that asks for "the GPU" gets number 0. So by default all workers of a machine share GPU 0, and the others
# idle. Each worker must be **pinned** to a device: it gets one of its own, by its *local* rank. Why not by rank? Take
# two machines with four GPUs each. Rank 5 would ask for a GPU 5 that its machine does not have.
#
# In plain PyTorch the line is `torch.cuda.set_device(hvd.local_rank())`, before anything else touches a GPU. On a CPU
# the same holds for cores. Four workers on two cores would start eight threads that fight each other. `use_device` ends
# the fight: by `torch.set_num_threads` each worker gets its share, at least one.
#
# ## Average or sum?
#
# ```python
# optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
# ```
#
# The optimizer is wrapped. From now on, it exchanges the gradients before each step.
#
# `hvd.allreduce` and `DistributedOptimizer` **average** unless you say `op=hvd.Sum`. If the loss is a mean over the
# batch, the average is right: it is the mean over the global batch, if all workers' batches are equally large (notebook
# 03).
#
# What if you sum? The sum of $K$ gradients is $K$ times the average. With SGD each step is then $K$ times too large.
# Adam divides a gradient by its usual size, so it hides the mistake. PyTorch's own `dist.all_reduce` sums, so look out
# when you port code.
#
# For *counts* the sum is right. So the script averages the loss, and sums the correct answers.
#
# ## Shards: is every GPU seeing the same data?
#
# ```python
# order = shuffle(len(train), args.seed, epoch)  # the same seed on all workers: one shuffle, divided
# data = batches(train, shard(order, hvd.rank(), hvd.size()), args.batch_size, augment)
# ```
#
# Suppose nobody divides the images, and all seeds are equal. What do four GPUs buy you? All compute the same gradient.
# You get the heat of four GPUs, and the result of one. Nothing fails. Horovod does not divide data for you, because it
# does not know what data is.
#
# ![](drawings/same_images.svg)
#
# Dividing means: one shuffle that all workers agree on, cut up by rank, equally many for each. So the shuffle uses
# `args.seed` alone. (The seed of PyTorch is `args.seed + hvd.rank()`, so each worker distorts its images in its own
# way.)

# %% exercise="shard_indices"
import torch


def shard_indices(count: int, rank: int, size: int, seed: int, epoch: int) -> list[int]:
    """The images that a worker uses in an epoch, in order. All get equally many, and no image goes to two workers."""
    ### BEGIN SOLUTION
    generator = torch.Generator().manual_seed(seed * 100_003 + epoch)
    order = torch.randperm(count, generator=generator)
    return order[: count // size * size][rank::size].tolist()
    ### END SOLUTION


# %% [markdown]
# Your function for a few images. Look for the image that nobody uses, and whether it is another one in the next epoch:

# %%
size, count = 4, 17
for epoch in range(2):
    shards = [shard_indices(count, rank, size, seed, epoch) for rank in range(size)]
    used = set().union(*shards)
    print(f"epoch {epoch}: {shards}, left out: {sorted(set(range(count)) - used)}")

# %% [markdown]
# (PyTorch's `DistributedSampler` divides the images, too. Give it to the loader, as in `DataLoader(images, batch_size,
# sampler=sampler)`, in place of `shuffle=True`. Call `sampler.set_epoch(epoch)` before each epoch. Without it every
# epoch has the same order, so the same images always meet in a batch. Nothing fails.)
#
# Why must all have equally many? Each update is a collective. A worker with one batch more waits for the others. (A
# worker that is only slower makes the others wait in each update, but they go on.)
#
# - If the others have left the loop and wait in another exchange, all wait for ever. Horovod prints a warning every
#   minute.
# - If the others have ended, this worker's exchange fails with an error.
# - If the others begin the next epoch, it is worse. This worker's last gradient of the old epoch is averaged with their
#   first ones of the new epoch, in silence.
#
# ## Counting the test images
#
# ```python
# correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
# correct = hvd.allreduce(correct, op=hvd.Sum)
# ```
#
# In *evaluation* each image must count exactly once. But ten images do not go into four equal shards. Two ways are
# common. PyTorch's `DistributedSampler` fills up the shards with images from the start of the list. Or the shards stay
# unequal, and one takes the mean of their accuracies. The network below gets 8 of 10 images right. The first two are
# wrong. **Guess:** will each way print more than 0.8, or less?

# %%
import numpy as np
from torch.utils.data import DistributedSampler

right = torch.tensor([0, 0, 1, 1, 1, 1, 1, 1, 1, 1.0])  # which of ten images a network gets right
padded = [list(DistributedSampler(range(len(right)), size, rank, shuffle=False)) for rank in range(size)]
unequal = [list(range(len(right)))[rank::size] for rank in range(size)]
print("padded: ", padded, "\nunequal:", unequal)


def mean_of_means(shards: list[list[int]]) -> float:
    return float(np.mean([right[shard].mean() for shard in shards]))


print(f"mean over padded shards:           {mean_of_means(padded):.4f}  ({sum(map(len, padded))} images)")
print(f"mean of the unequal shards' means: {mean_of_means(unequal):.4f}  (images in small shards weigh more)")
counted = sum(right[shard].sum().item() for shard in unequal) / sum(map(len, unequal))
print(f"sum of correct / sum of images:    {counted:.4f}  (the truth: {right.mean():.4f})")

# %% [markdown]
# **All-reduce counts, not accuracies.** Sum the correct answers, sum the images, and divide. That is right for shards
# of any size, if no image counts twice. Each worker counts alone, and one all-reduce comes at the end. So the numbers
# of batches may differ.
#
# How wrong can padding be? With 7 workers, 3 of CIFAR-10's 10,000 test images are counted twice, an error of at most
# 0.03 percentage points. With 600 workers it is 200 images, and up to 2 points. Papers report differences of that size.
#
# ## Break the lines
#
# You have met the lines. One is left: only rank 0 writes, so that files are not mixed. Do they all matter? We leave out
# five of them, one at a time, and compare the workers'
# weights, images, devices and files. **Guess:** which of the five programs will crash?
#
# | left out | what the workers do then |
# | --- | --- |
# | `hvd.broadcast_parameters` | they begin with different weights |
# | `DistributedOptimizer` | nobody exchanges gradients |
# | the device of `hvd.local_rank()` | all take the same device |
# | `shard` | all train on the same images |
# | `if hvd.rank() == 0` | all write the same files |
#
# **What to look at:** on the left, a row is a program, and a column is a symptom. For example, the first column counts
# how many different sets of weights the workers have. A 1 is healthy in all columns. On the right you see how far the
# networks of the workers lie from their mean, as a share of the length of this mean. (Without the broadcast, the
# networks begin as four random ones. These are $\sqrt 3$ times the length of their mean away from it, which is 173 %.
# This curve falls because the mean grows.)

# %%
from lessons import saved

result = saved("C27")
for arm, (run, *_) in result.runs.items():
    print(f"{arm}: {sum(map(bool, run['errors']))} of {len(run['errors'])} workers ended with an error")

# %% [markdown]
# Distributed bugs are expensive because they are silent. Most of these programs run to the end, print a loss that
# falls, and save a model.
#
# - **Without `hvd.broadcast_parameters`** the workers still exchange gradients. But each computes them for weights that
#   no other worker has.
# - **Without `DistributedOptimizer`** you get several lonely runs, and only one is saved. The printed accuracy is a
#   mean over different networks.
# - **On one device** all is computed rightly, and the other devices idle.
# - **Without `shard`** each worker goes through all images, in the same order. So all four have the same images in a
#   batch, and differ only in how they distort them. Three of them compute hardly anything new. An epoch takes four
#   times as long.
# - **With several writers** a file may mix lines of several workers. Or a worker fails, because another one has already
#   renamed the file.
#
# You find such a bug by asking for its symptom. Compare the hashes. Count the distinct images. Print the device. See
# who writes.
#
# ## Convert it yourself
#
# Now turn the program of one worker into one of four. Try it from memory, and look up a line only when you are stuck.
# The next cell copies `cifar_single.py` to `my_workers.py`, beside this notebook. Then it runs `my_workers.py` on four
# workers, and says what they do.

# %% tags=["task"]
from lessons.cells.tasks import convert

convert.begin()
steps = convert.check()

# %% [markdown]
# Open `my_workers.py` in JupyterLab. Change one thing, save the file, and run the next cell. This order works:
#
# 1. The programs know each other, and each takes its own device.
# 2. They share out the images.
# 3. They average the gradients.
# 4. They start with rank 0's weights.
# 5. Each draws its own random numbers.
# 6. They add up their counts.
# 7. Only rank 0 writes.

# %% tags=["solution"]
import shutil

from lessons.cells.launches.running import SOURCE

solved = shutil.copy(SOURCE / "cifar_base.py", convert.MINE)

# %%
steps = convert.check()

# %% [markdown]
# When all steps are done, or when you are stuck, compare with ours. The next cell prints `cifar_base.py` without its
# opening comment. A plus marks each line that is new or changed.

# %%
import difflib
from pathlib import Path

from cifar import cli

source = Path(cli.__file__).parents[1]
one, many = (
    (source / name).read_text().split('"""', 2)[2].strip().splitlines() for name in ("cifar_single.py", "cifar_base.py")
)
marked = [line for line in difflib.ndiff(one, many) if line[0] in " +"]  # without the lines that are gone
print("\n".join(marked))

# %% [markdown]
# ## The bug zoo
#
# Now be the doctor. You get the measurements of a run. Name its bug. (The bug "rank 0's metrics" means: the accuracy
# that is printed comes from the test images of worker 0 alone.)


# %% exercise="bug_zoo"
def diagnose(symptoms: dict) -> str:
    """The bug's name."""
    ### BEGIN SOLUTION
    if len(set(symptoms["start_hashes"])) > 1:
        return "no broadcast"
    if symptoms["distinct_images"] < symptoms["used_images"]:
        return "identical shards"
    if symptoms["top_rate"] > 1.01 * symptoms["base_rate"] * symptoms["workers"]:
        return "double rate scaling"
    if symptoms["tested_images"] < symptoms["test_images"]:
        return "rank 0's metrics"
    return "padded evaluation"
    ### END SOLUTION


# %% [markdown]
# ## Exchange while you compute
#
# Your program is right. Is it also fast? In each update the workers exchange all gradients. While they do, they could
# wait, or they could compute. Take a worker whose forward pass takes 20 ms, and whose backward pass takes 40 ms. Its
# exchange takes 30 ms. If it waits for the exchange, a third of each update is lost. So how much of the exchange can be
# hidden?
#
# The backward pass begins at the last layer. As soon as the last layer's gradient is ready, it can travel, while the
# worker computes the gradient of the layer before:
#
# ![](drawings/overlap.svg)
#
# Horovod does this with a **hook** on each weight: a function that PyTorch calls as soon as this weight's gradient is
# ready. `DistributedOptimizer` sets the hooks. A hook announces the gradient, and `loss.backward()` goes on. Only
# `optimizer.step()` waits. So the exchange and the backward pass go on at the same time: they **overlap**.
#
# **Read the drawing.** In its last case the gradient travels in six groups. Each takes about 5 ms for its bytes and 1
# ms for its message. Five of them hide behind the backward pass. The last one cannot, because the first layer's
# gradients are ready only when the backward pass ends. It is the *tail*. So an update takes 20 + 40 + 6 = 66 ms.
#
# **Your turn:** how long does an update take with three groups? All bytes together take 29 ms, and each message costs 1
# ms, however small it is.
#
# <details><summary>Compare your answer</summary>
#
# A group takes 29/3 + 1 = 10.7 ms. Two hide, and the third is the tail. So an update takes 20 + 40 + 10.7, or 71 ms.
#
# </details>
#
# Now move the dials. A group is called a *bucket* there. **Guess first:** with 12 buckets, and with 32, is an update
# shorter than with six?

# %%
from lessons import explore

explore("timeline")

# %% [markdown]
# With twelve buckets an update takes 64 ms, because less is left at the end. With 32 it takes 82 ms: 32 messages cost
# 32 ms, so the exchange takes 61 ms, and only about 39 ms of it can hide.
#
# In general, the exchange can hide only behind the backward pass, and the tail cannot hide at all. (In the forward pass
# there are no gradients yet.) So at best an update takes
#
# $$ \text{forward} + \max(\text{backward}, \text{exchange} - \text{tail}) + \text{tail}. $$
#
# (The dials show one or two milliseconds more, because the exchange waits for the first bucket. People often quote
# $\max(\text{compute}, \text{exchange})$, here 60 ms. It forgets the tail.)
#
# Does overlap pay? The formula has two *resources*: processors that compute, and a network that sends by itself. On a
# GPU with a good network card that is nearly true. So overlap usually saves time there: leave it on. On our machine the
# same cores compute and send, and overlap saved nothing in our runs. The lab (notebook 14) shows these runs. It also
# shows a **timeline** of your own program: Horovod's record of what was exchanged when.
#
# <details><summary>Where does clipping belong?</summary>
#
# Clipping shortens a gradient that is too long. It needs the length of all gradients together. So it must come after
# the exchange. Call `optimizer.synchronize()`, clip, and then step inside `with optimizer.skip_synchronize():`. The
# exchange still overlaps, and only the clipping waits. If you clip before the exchange, each worker divides by a
# different length.
#
# (Hooks, optimizer and broadcast know only the weights that exist when their lines run. So change the network before
# them.)
#
# </details>
#
# ## Summary
#
# - Horovod launches one program several times. Rank, size and local rank tell each process who it is; collectives are
#   called by all, or hang.
# - The key changes: init, pin by local rank, wrap the optimizer, broadcast the start (after a restart the optimizer's
#   state and the epoch, too), shard, reduce what you report, write on rank 0.
# - Average gradients and losses; sum counts. Evaluate by counts, so that unequal shards do no harm.
# - The exchange can hide behind the backward pass, but its tail cannot. Overlap helps only if the exchange does not
#   need the cores that compute.
# - Almost every change that is left out fails in silence. Look for its symptom.
#
# The lines to keep:
#
# ```python
# hvd.init()
# torch.cuda.set_device(hvd.local_rank())
# optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
# hvd.broadcast_parameters(net.state_dict(), root_rank=0)
# mine = order[: len(order) // hvd.size() * hvd.size()][hvd.rank() :: hvd.size()]
# correct = hvd.allreduce(correct, op=hvd.Sum)
# if hvd.rank() == 0:
#     torch.save(net.state_dict(), "model.pt")
# ```
#
# The lab is notebook 14. There you put bugs into a program yourself, and look into a real update. It also has a
# checklist for a program that gets slower with more workers.
#
# ## Questions
#
# <details><summary>Question 1: after each epoch rank 0 alone tests the network on all test images. This takes 90
# seconds, and it exchanges nothing. The other ranks go on at once. Does the program hang?</summary>
#
# No. But all the others wait for rank 0. They announce the first gradient of the next epoch, and rank 0 announces it 90
# seconds later. After 60 seconds Horovod warns that rank 0 stalls. Let each rank test its share of the images, and add
# up the counts: then nobody waits, and the test takes a quarter of the time with four workers.
#
# </details>
#
# <details><summary>Question 2: you leave the broadcast out, but set the same seed on all workers before the network is
# made. The hashes of the weights agree. Is the broadcast unnecessary?</summary>
#
# In this run it changes nothing. It will as soon as something draws a random number earlier on one worker, a library's
# version differs, or only one worker reads a checkpoint. And equal seeds have a side effect: the workers also distort
# their images alike, unless you give each its own seed after the network is made.
#
# </details>
