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
# changed line is for and what happens without it, and read Horovod's timeline.
#
# **Time:** about {{minutes_04}} minutes, and about three minutes of waiting on 2 CPU cores. **Builds on:** 02
# (`cifar_single.py`) and 03 (the ring all-reduce, means of means).
#
# In the last notebook you averaged gradients by hand. Nobody trains that way: a library does it, in the background,
# while back-propagation goes on. Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) asks for a few changed lines.
# They are easy to copy, and many mistakes in distributed training are one of them left out or half understood. So we
# take them one by one. (PyTorch's own DDP does the same, and lesson 10 shows it. It hides these lines, so you learn
# more here.)

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import difflib
from pathlib import Path

from cifar import cli
from lessons import horovodrun, saved

# %% [markdown]
# ## What changes
#
# `cifar_single.py` is notebook 02's program. `cifar_base.py` is the same program for several workers, and nothing
# more. Here is `cifar_base.py` without its opening comment. A plus marks each line that is new or changed:

# %%
source = Path(cli.__file__).parents[1]
one, many = (
    (source / name).read_text().split('"""', 2)[2].strip().splitlines() for name in ("cifar_single.py", "cifar_base.py")
)
marked = [line for line in difflib.ndiff(one, many) if line[0] in " +"]  # without the lines that are gone
print("\n".join(marked))

# %% [markdown]
# Read it with these questions in mind. Almost each line answers one:
#
# | question | answer | section |
# | --- | --- | --- |
# | Who am I? | `hvd.init()`, then `hvd.rank()`, `hvd.size()`, `hvd.local_rank()` | MPI's words |
# | Which device is mine? | `use_device(..., hvd.local_rank(), hvd.local_size())` | A GPU each |
# | Do all start with equal weights? | `hvd.broadcast_parameters(...)` | An equal start |
# | How do the weights stay equal? | `hvd.DistributedOptimizer(...)`: all apply the same mean gradient | Average or sum |
# | Which images are mine? | `shard(order, hvd.rank(), hvd.size())` | Shards |
# | What number do I report? | `hvd.allreduce(...)`: the mean loss, the sum of correct answers | Counting the test images |
# | Who writes files? | `if hvd.rank() == 0` | Break each line |
#
# Two more lines look like details. The seed is `args.seed + hvd.rank()`, so that each worker distorts its images in
# another way. But the *shuffle* uses `args.seed` alone, so that all workers cut up one and the same order.
#
# What is missing? The learning rate. Horovod's own list of changes also scales it by the number of workers. That is not
# a matter of correctness but of convergence, so it waits for notebooks 05 and 06.
#
# ### Break one line
#
# Leave one of these lines out, and see what happens. `sabotage` takes `cifar_base.py`, puts a bug into it, and launches
# four workers for some seconds. Without `hvd.broadcast_parameters`, the workers start with different weights. Will the
# program crash?
#

# %%
from lessons.cells.sabotage import sabotage

rows = sabotage("no broadcast")

# %% [markdown]
# Nothing crashes, and the program itself prints nothing about the bug. The table compares the weights of the workers,
# and so it shows it.
#
# ### Break each line
#
# Do all the lines matter? The next experiment leaves out five of the changes, one at a time. Each time it runs what is
# left on real workers, and observes their weights, their images, their device and the files that they write.
#
# **What to look at:** on the left a row for each program, and a column for each symptom. A 1 is healthy. On the right
# you see how far the workers' networks are apart. Before you look: which of these programs will crash?

# %%
result = saved("C27")
for arm, (run, *_) in result.runs.items():
    print(f"{arm}: {sum(map(bool, run['errors']))} of {len(run['errors'])} workers ended with an error")

# %% [markdown]
# This is what makes distributed bugs expensive: they are silent. Most of these programs run to the end, print a loss
# that falls, and save a model. Without `hvd.broadcast_parameters`, the workers even go on exchanging gradients. Each
# computes them for weights that no other worker has. (The figure divides the distance by the length of the mean
# weights. This length grows, so the curve falls although the distance stays.) Without `DistributedOptimizer` no
# gradient is exchanged: there are several lonely runs from one start, of which one is saved. Loss and correct answers
# are still reduced, so the accuracy that is printed is a mean over different networks. You find such a bug by asking
# for the symptom: a hash of the weights on each worker, the number of distinct images, the device, the writer.
#
# The last symptom, several writers, shows in `metrics.jsonl` and `model.pt`. If several workers write the same file at
# the same time, it may hold lines of each of them, or a worker may fail because another one has already renamed the
# file.
#
# ## MPI's words
#
# Horovod speaks the language of MPI, the standard by which programs on supercomputers have talked to each other since
# the 1990s. A handful of words is enough:
#
# | word | meaning |
# | --- | --- |
# | size | how many workers there are |
# | rank | this worker's number, from 0 to size - 1 |
# | local rank | its number among the workers on *its* machine |
# | broadcast | one worker's value goes to all |
# | all-reduce | all values are combined (mean, sum, maximum, ...), and all get the result |
# | all-gather | all get all values, in the order of the ranks |
# | reduce-scatter | as all-reduce, but each gets only a part of the result; notebook 03's ring begins with it |
# | barrier | nobody goes on before all are here |
#
# The last five are **collectives**: *every* worker has to call them. If one worker does not, all others wait for it.
# The most frequent hang is a collective inside `if hvd.rank() == 0`.
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
from lessons.cells.programs import launch

print("\n".join(launch("horovodrun", "words.py", workers)))

# %% [markdown]
# There is no master program that gives orders. `horovodrun` starts the *same* program several times, as `mpirun` does
# for MPI, and tells each process its number through environment variables. `hvd.init()` reads them, and the processes
# find each other. The transport below may be MPI itself, NVIDIA's **NCCL** between GPUs, or Gloo, which needs
# nothing but a network. We use Gloo. The program does not change.
#
# This notebook is one process, so here `hvd.size()` could only be 1. We wrote a file and launched it, as in notebook
# 03. (Horovod's `horovod.run(function, np=4)` does the same for a function: it launches new processes and sends them
# the function.)
#
# ## The real script
#
# Now `cifar_base.py` itself. We ask Horovod for a **timeline** on the way, through an environment variable: a record of
# what it did with each tensor, which we read further below.

# %%
trace = Path("timeline.json").resolve()
trace.unlink(missing_ok=True)
lines = horovodrun(
    "cifar_base.py", workers, epochs=epochs, images=images, batch_size=64, seed=seed, device=device,
    environment={"HOROVOD_TIMELINE": str(trace)},
)  # fmt: skip
lines[-1]

# %% [markdown]
# One line an epoch, though all workers ran the same code: only rank 0 records. Do not expect much of the accuracy,
# because the network has trained for a moment only. Is it faster than one worker? Notebook 03 has measured that: if
# each worker has a core of its own, two workers use about {{cores_weak}} images while one uses 100. Four workers on two
# cores cannot be faster than two. Here we want to know that the program is *right*.
#
# ## A GPU each
#
# A process that asks for "the GPU" gets number 0. So without a word from you all workers of a machine end up on GPU 0:
# it runs out of memory, or does all the work while the others idle. Each worker has to be **pinned** to a device of its
# own, by its *local* rank. Rank will not do: with two machines of four GPUs, rank 5 would ask for a GPU 5 that its
# machine does not have.
#
# In plain PyTorch the line is `torch.cuda.set_device(hvd.local_rank())`, before anything else touches a GPU. On a CPU
# the same thought applies to cores. PyTorch takes all of them by default, so four workers on two cores would start
# eight threads that fight each other. `use_device` gives each worker its share, at least one, by
# `torch.set_num_threads`. This ends the fight, but it adds no cores. Horovod's own background thread comes on top.
#
# ## An equal start
#
# All workers apply the same gradient, so all make the same step. Two networks that begin equal stay equal. Two that
# begin apart stay apart, at the same distance.
#
# In a **broadcast** one worker sends its weights to all others. Here this is needed, because the script gives each
# worker another seed. Equal seeds would make an equal start as well. But they fail if one worker has another version of
# a library, or if only one of them has read a **checkpoint**, a file with the state of a run.
#
# After a restart, send the optimizer's state and the number of the epoch as well. Otherwise only rank 0 has them.
# Momentum and Adam's averages are a memory of earlier gradients, and each step depends on them. If only rank 0 has this
# memory, the same gradient makes different steps, and the networks drift apart. If only rank 0 knows the epoch, the
# workers use different shuffles, and rank 0 ends first. The lab of this lesson (notebook 14) shows a restart.
#
# ## Average or sum?
#
# `hvd.allreduce` and `DistributedOptimizer` **average** unless you say `op=hvd.Sum`. For a loss that is a mean over the
# batch the average is right: you then have the mean over the global batch, if all workers' batches are equally large
# (notebook 03). The sum of $K$ gradients is $K$ times the average. With SGD each step is then $K$ times too large, as
# if the rate were multiplied by $K$. If you also scale the rate, you have scaled twice. Adam divides a gradient by its
# usual size, so there the mistake hardly shows. Code ported from another library often sums: PyTorch's own
# `dist.all_reduce` does.
#
# For *counts* the sum is right, and the mean is a number that nobody wants. That is why the script averages the loss,
# but sums the correct answers.
#
# Worker 1 may finish its gradients in another order than worker 0. So Horovod needs a **name** for each gradient, hence
# `named_parameters=`. It starts an exchange when all workers have announced the same name.
#
# ## Shards: is every GPU seeing the same data?
#
# If nobody divides the images, yes. Each worker reads all of them, and if the seeds are equal as well, all compute the
# same gradient: several GPUs, the heat of several GPUs, and the result of one. Nothing fails. Horovod does not divide
# data for you. It does not know what data is.
#
# Dividing means: one shuffle that all workers agree on, cut up by rank, equally many for each.

# %% exercise="shard_indices"
import torch


def shard_indices(count: int, rank: int, size: int, seed: int, epoch: int) -> list[int]:
    """The images that a worker uses in an epoch, in order: equally many on each, no image on two."""
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
# Why must all have equally many? Because each update is a collective. A worker with one batch more than the others
# waits for workers that have already left the loop, and that wait elsewhere. Horovod then prints every minute that some
# ranks stall, and waits on. (`hvd.join()` lets a worker that is done answer with zeros. But zeros then count in the
# mean.)
#
# ## Counting the test images
#
# In *evaluation* no image may be left out, and none may count twice. But ten images do not go into four equal shards.
# Two ways to deal with that are common, and both change the result a little. Shards may be filled up with images from
# the start of the list, as PyTorch's `DistributedSampler` does. Or the shards stay unequal, and one takes the mean of
# their accuracies:

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
# **All-reduce counts, not accuracies.** Two sums, of the correct answers and of the images, are right for any shards,
# padded ones excepted. Evaluation needs no equal numbers of batches, because it exchanges nothing on the way: each
# worker counts, and one all-reduce at the end is all.
#
# How wrong can padding be? With 7 workers, 3 of CIFAR-10's 10,000 test images are counted twice, an error of at most
# 0.03 points. With 600 workers it is 200 images, and up to 2 points. That is as large as the differences that papers
# report. The accuracy of rank 0 alone, on its own shard, is worse still. It looks just like the real one. But it rests
# on few images, so it is often far from the truth.
#
# ## Reading the timeline
#
# Back to the record of our run. Horovod writes it in the format of Chrome's tracing tool: open `timeline.json` at
# `chrome://tracing` or `ui.perfetto.dev` and each tensor is a row. Here is what happens in a row:
#
# - `NEGOTIATE_ALLREDUCE`: from the moment when the first worker announced the gradient until all have. Long bars here
#   mean that workers wait for each other: a slow one, or one that does something else.
# - `ALLREDUCE`: the exchange, with its parts. `MEMCPY_IN_FUSION_BUFFER` collects small tensors in one buffer,
#   `GLOO_ALLREDUCE` (`NCCL_ALLREDUCE`, `MPI_ALLREDUCE`) sends them round the ring, `MEMCPY_OUT_FUSION_BUFFER` hands
#   them out again. Long bars here mean that the exchange is the limit: the network, or on one machine its processors.
#
# We read the file, and pick a usual update of the network's weights.

# %%
from lessons.cells.update import one_update, show_update

update = one_update(trace)
print(f"{trace.stat().st_size / 1e3:,.0f} kB of timeline; one update has {len(update)} phases, for example")
for event in update[:6]:
    print(f"  {event.tensor or 'all':24} {event.phase:26} {1000 * event.seconds:8.2f} ms")

# %%
show_update(update)

# %% [markdown]
# Read it from top to bottom. Back-propagation begins at the last layer, so the last layer's gradients are ready first.
# A thin line has one of two reasons: another worker has not announced this gradient yet, or the exchange before is
# still going on. Thick lines that begin and end together are gradients that travelled together. Horovod collects small
# gradients, and sends them in one message: **tensor fusion**. An exchange takes some time however small it is, so a few
# large ones are cheaper than many small ones. The lab of this lesson (notebook 14) measures by how much.
#
# The grey part is the time before the first exchange. There the worker only computes: the optimizer's step, the next
# batch, the forward pass and the beginning of the backward pass. The computing also goes on during the exchanges,
# because the gradients of the first layers are still missing. Horovod does not record it, so the figure cannot show it.
# Only rank 0 writes a timeline. If another worker is slow, rank 0 waits for it, and its first gradients show a long
# thin line.
#
# ## Overlap
#
# ![](drawings/overlap.svg)
#
# The exchange and back-propagation go on at the same time. `DistributedOptimizer` puts a **hook** on each weight, a
# function that PyTorch calls as soon as the weight's gradient is there. It announces the gradient, and
# `loss.backward()` goes on. (Hooks, optimizer and broadcast know only the weights that exist when their lines run. So
# change the network before these lines.) Only `optimizer.step()` waits. So the exchange and the backward pass
# **overlap**.
#
# What can be saved? The exchange can hide behind the backward pass only. During the forward pass there is no gradient
# yet. And the last gradients are ready when the backward pass ends, so their exchange, the *tail*, comes after it. The
# rest of the exchange goes on during the backward pass. At best an update takes
#
# $$ \text{forward} + \max(\text{backward}, \text{exchange} - \text{tail}) + \text{tail}. $$
#
# For example, let the forward pass take 20 ms, the backward pass 40 ms, the exchange 30 ms and its tail 5 ms. Then an
# update takes 20 + max(40, 25) + 5 = 65 ms. One after the other would take 90 ms.
#
# People often quote $\max(\text{compute}, \text{exchange})$. Here that would be 60 ms, which is too good to be true: it
# leaves out that the tail comes after the backward pass.
#
# How much can overlap hide? Move the dials, and find out. (A *bucket* is a group of gradients that are sent together.)

# %%
from lessons import explore

explore("timeline")

# %% [markdown]
# Theory says that overlap makes an update shorter. Does it do so on one machine without a GPU? Guess first: who does
# the exchanging, and is there a free core for it?
#
# **What to look at:** on the left, two joined points are one launch, without overlap and with it. Does the line fall or
# rise? The marks *best* and *sum* say what the theory would allow.

# %%
result = saved("C26")

# %% [markdown]
# The theory assumes two *resources*: processors that compute, and a network that sends by itself. On a GPU with a good
# network card that is nearly true. Here one pool of cores does both. Copying through the **loopback**, the network
# inside one machine, and adding up is work for the CPU. If no core is free, exchange and back-propagation share the
# cores, and each slows the other down. So on this machine overlap saves nothing, and the claim is false here.
#
# Overlap has a price as well, and it can be larger than the gain. Gradients that leave as they come leave in several
# small exchanges, and each pays its latency (notebook 03). Sent after the backward pass, all of them fit into one
# buffer, and go out in one exchange. Go back to the figure of your own update, at the end of "Reading the timeline",
# and count the groups of thick lines that begin and end together. Each group is one exchange. The first group is small,
# and still it often takes long: it goes out while the backward pass uses the cores.
#
# <details><summary>Where does clipping belong?</summary>
#
# Clipping shortens a gradient that is too long. It needs the length of all gradients together, so it must come after
# the exchange. Call `optimizer.synchronize()`, clip, and then step inside `with optimizer.skip_synchronize():`. The
# exchange still overlaps, and only the clipping waits. Clip before the exchange, and each worker clips by another
# length.
#
# </details>
#
# ## Convert it yourself
#
# You have seen each line, and what happens without most of them. Now turn the program of one worker into one of four.
# Try it from memory, and look up a line only when you are stuck. The next cell copies `cifar_single.py` to
# `my_workers.py`, beside this notebook. Then it launches `my_workers.py` on four workers for some seconds, and says
# what they do.

# %% tags=["task"]
from lessons.cells import convert

convert.begin()
steps = convert.check()

# %% [markdown]
# Open `my_workers.py` in JupyterLab. Change one thing, save the file, and run the next cell. Go on until all steps are
# done. This order works. First the programs know each other, and each takes a device of its own. They share out the
# images, and average the gradients. They start with rank 0's weights, and draw their own random numbers. At last they
# add up their counts, and only rank 0 writes.

# %% tags=["solution"]
import shutil

from lessons.cells.running import SOURCE

solved = shutil.copy(SOURCE / "cifar_base.py", convert.MINE)

# %%
steps = convert.check()

# %% [markdown]
# ## The bug zoo
#
# So be the doctor. You get what was measured of a run, and name its bug.


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
# ## Summary
#
# - Horovod launches one program several times. Rank, size and local rank tell each process who it is; collectives are
#   called by all, or hang.
# - The key changes: init, pin by local rank, wrap the optimizer, broadcast the start (after a restart the optimizer's
#   state and the epoch, too), shard, reduce what you report, write on rank 0.
# - Average gradients and losses; sum counts. Evaluate by counts, so that unequal shards do no harm.
# - Overlap hides an exchange only if the exchange does not need the cores that compute.
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
# The lab of this lesson is notebook 14. There you put bugs into a program yourself, and it has a list to go through
# when a program is slower with more workers.
#
# ## Questions
#
# <details><summary>Question 1: after each epoch rank 0 alone tests the network on all test images. This takes 90
# seconds, and it exchanges nothing. The other ranks go on at once. Does the program hang?</summary>
#
# No, but all wait. The others announce the first gradient of the next epoch, and rank 0 announces it 90 seconds later.
# After 60 seconds Horovod warns that rank 0 stalls. Let each rank test its share of the images, and add up the counts:
# then nobody waits, and the test takes a quarter of the time with four workers.
#
# </details>
#
# <details><summary>Question 2: in your timeline each gradient waits long in NEGOTIATE_ALLREDUCE, and is then exchanged
# in no time. You are offered a faster network. Do you buy it?</summary>
#
# No. The exchange is short already. The workers wait for one of them to announce its gradient: it is slower, gets its
# images later, or shares its core or GPU with somebody. Find out which, and why.
#
# </details>
#
# <details><summary>Question 3: you leave the broadcast out, but set the same seed on all workers before the network is
# made. The hashes of the weights agree. Is the broadcast superfluous?</summary>
#
# In this run it changes nothing. It will as soon as something draws a random number earlier on one worker, a library's
# version differs, or only one worker reads a checkpoint. And equal seeds have a side effect: the workers also distort
# their images alike, unless you give each its own seed after the network is made.
#
# </details>
