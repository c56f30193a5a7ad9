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
# **Time:** about {{minutes_04}} minutes, and about three more of waiting on 2 CPU cores. **Builds on:** 02
# (`cifar_single.py`) and 03 (the ring all-reduce, means of means).
#
# In the last notebook you averaged gradients by hand. Nobody trains that way: a library does it, in the background,
# while back-propagation goes on. Horovod (Sergeev and Del Balso 2018, arXiv:1802.05799) asks for a handful of changed
# lines. They are easy to copy, and nearly all mistakes in distributed training are one of them left out or half
# understood. So we take them one by one. Everything here runs on a CPU: this notebook *is* a CPU-only Horovod example.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import difflib
from pathlib import Path

from benchmarks.experiment.plots import axes
from cifar import cli
from lessons import horovodrun, live, saved, show

# %% [markdown]
# ## What changes
#
# `cifar_single.py` is notebook 02's program. `cifar_base.py` is the same program for several workers, and nothing
# more. Here is the difference between the two files as they lie in `source_code/`, without their opening comments:

# %%
source = Path(cli.__file__).parents[1]
one, many = (
    (source / name).read_text().split('"""', 2)[2].strip().splitlines() for name in ("cifar_single.py", "cifar_base.py")
)
changes = list(difflib.unified_diff(one, many, n=0, lineterm=""))[2:]  # without the files' names
changes = [line for line in changes if not line.startswith("@@")]
print("\n".join(changes))
print(f"\n{sum(line.startswith('+') for line in changes)} of {len(many)} lines are new or changed")

# %% [markdown]
# Read it with these questions in mind. Each line answers one:
#
# | question | answer | section |
# | --- | --- | --- |
# | Who am I? | `hvd.init()`, then `hvd.rank()`, `hvd.size()`, `hvd.local_rank()` | MPI's words |
# | Which device is mine? | `use_device(..., hvd.local_rank(), hvd.local_size())` | A GPU each |
# | Do all start with equal weights? | `hvd.broadcast_parameters(...)` | An equal start |
# | How do the weights stay equal? | `hvd.DistributedOptimizer(...)`: all apply the same mean gradient | Average or sum |
# | Which images are mine? | `shard(order, hvd.rank(), hvd.size())` | Shards |
# | What number do I report? | `hvd.allreduce(...)`: the mean loss, the sum of correct answers | Counting the test images |
# | Who writes files? | `if hvd.rank() == 0` | What breaks |
#
# Two more lines look like details. The seed is `args.seed + hvd.rank()`, so that each worker distorts its images in
# another way; but the *shuffle* uses `args.seed` alone, so that all workers cut up one and the same order. Which of the
# two a seed is for, common or one's own, is worth a thought each time.
#
# What is missing? The learning rate. Horovod's own list of changes also scales it by the number of workers. That is not
# a matter of correctness but of convergence, so it waits for notebooks 05 and 06.
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
# The last five are **collectives**: *every* worker has to call them, or those who did wait for the others. The most
# frequent hang is a collective inside `if hvd.rank() == 0`.
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
import os
import subprocess
import sys


def launch(program: str, count: int) -> None:
    """Start a program with so many workers, and show what they printed, by rank."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["horovodrun", "-np", str(count), sys.executable, program]
    print("$ horovodrun -np", count, "python", program)
    variables = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    print("\n".join(sorted(done.stdout.replace("<stdout>:", " ").splitlines(), key=lambda line: line[:4])))


launch("words.py", workers)

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
# One line an epoch, though all workers ran the same code: only rank 0 records. Do not expect much of the accuracy. This
# network is the bootcamp's without batch normalisation, trained for a moment. How to make it better is the subject of
# notebooks 05 and 06; here we want to know that it is *right*.
#
# ## A GPU each
#
# A process that asks for "the GPU" gets number 0. So without a word from you all workers of a machine end up on GPU 0:
# it runs out of memory, or does all the work while the others idle. Each worker has to be **pinned** to a device of its
# own, by its *local* rank. Rank will not do: with two machines of four GPUs, rank 5 would ask for a GPU 5 that its
# machine does not have. If one copy of the model spans several GPUs, a worker takes as many in a row.

# %%
hosts, gpus = 2, 4
for span in (1, 2):
    each = gpus // span  # workers on a host
    print(f"{hosts} hosts with {gpus} GPUs, {span} for a copy of the model: horovodrun -np {hosts * each}")
    for rank in range(hosts * each):
        host, local_rank = divmod(rank, each)
        own = [f"cuda:{local_rank * span + part}" for part in range(span)]
        print(f"  rank {rank}: host {host}, local rank {local_rank}, {', '.join(own)}")

# %% [markdown]
# In plain PyTorch the line is `torch.cuda.set_device(hvd.local_rank())`, before anything else touches a GPU. On a CPU
# the same thought applies to cores. PyTorch takes all of them by default, so four workers on two cores would start
# eight threads that fight each other. `use_device` gives each worker its share, at least one. Horovod's own background
# thread comes on top.
#
# ## An equal start
#
# All workers apply the same gradient. Two networks that begin equal stay equal; two that begin apart stay apart. The
# same gradient makes the same step, with plain SGD and with Adam from a fresh state alike, so even the distance stays
# what it was, but for rounding. (The figure at the end of this notebook shows it relative to the length of the workers'
# mean weights, which grows.)
#
# In a **broadcast** one worker sends its weights to all others. Equal seeds would make an equal start as well. But they
# fail if one worker has another version of a library, or if only one of them has read a **checkpoint**, a file with the
# state of a run.
#
# After a restart, send the optimizer's state and the number of the epoch as well. The lab of this lesson (notebook 14)
# shows what happens otherwise.
#
# ## Average or sum?
#
# `hvd.allreduce` and `DistributedOptimizer` **average** unless you say `op=hvd.Sum`. For a loss that is a mean over the
# batch the average is right: you then have the mean over the global batch, if all workers' batches are equally large
# (notebook 03). A sum of $K$ means is $K$ times as long, which with SGD is a rate that is secretly multiplied by $K$.
# Code ported from another library often sums: PyTorch's own `dist.all_reduce` does. If you also scale the rate, you
# have scaled twice. And with Adam you may not even notice, because it divides the factor out again.
#
# For *counts* the sum is right, and the mean is a number that nobody wants. That is why the script averages the loss,
# but sums the correct answers.
#
# What has to agree is the pairing. Horovod matches tensors by **name**, not by the order in which they come: worker 1
# may have its last layer's gradient ready before worker 0 has. Hence `named_parameters=`. The workers announce what
# they have, and when all have announced a tensor, its all-reduce begins. The first time rank 0 counts the
# announcements. From then on each worker has the tensor in a list, and a few bits that all workers exchange tell which
# ones are ready.
#
# ## Shards: is every GPU seeing the same data?
#
# If nobody divides the images, yes. Each worker reads all of them, and if the seeds are equal as well, all compute the
# same gradient: several GPUs, the heat of several GPUs, and the result of one. Nothing fails. Accuracy per epoch is
# even fine. Horovod does not divide data for you; it does not know what data is.
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
# waits for partners that have already gone home. Horovod then prints every minute that some ranks stall, and waits
# on. (`hvd.join()` lets a worker that is done answer with zeros; but zeros then count in the mean.)
#
# ## Counting the test images
#
# In *evaluation* no image may be left out, and none may count twice. But ten images do not go into four equal shards.
# Libraries have two ways to deal with that, and both change the result a little. PyTorch's `DistributedSampler` fills
# up the shards with images from the start of the list:

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
# How wrong can padding be with CIFAR-10's 10,000 test images?

# %%
tested = 10_000
for size_now in (4, 7, 64, 600):
    extra = -tested % size_now
    most = 100 * extra / (tested + extra)
    print(f"{size_now:3} workers: {extra:3} images counted twice, an error of up to {most:.2f} points")

# %% [markdown]
# With few workers the error is small. With hundreds it is as large as the differences that papers report. And one
# number that is far from the truth more often: the accuracy of rank 0 alone, on its shard. It looks just like the real
# one, and scatters more.
#
# ## Reading the timeline
#
# Back to the record of our run. Horovod writes it in the format of Chrome's tracing tool: open `timeline.json` at
# `chrome://tracing` or `ui.perfetto.dev` and each tensor is a row. Here is what happens in a row:
#
# - `NEGOTIATE_ALLREDUCE`: from the moment when the first worker announced the gradient until all have. Long bars here
#   mean that workers wait for each other: a slow one, or one that does something else.
# - `ALLREDUCE`: the exchange, with its parts. `MEMCPY_IN_FUSION_BUFFER` collects small tensors, `GLOO_ALLREDUCE`
#   (`NCCL_ALLREDUCE`, `MPI_ALLREDUCE`) sends them round the ring, `MEMCPY_OUT_FUSION_BUFFER` hands them out again. Long
#   bars here mean that the network is the limit.
# - Gaps: nobody has a gradient yet. That is computing.
#
# We read the file with the same module that grades your assignment, and pick a usual update of the network's weights.

# %%
from cifar.model import BootcampResNet, no_norm
from grader.report import timeline

names = [name for name, _ in BootcampResNet(norm=no_norm).named_parameters()]
events = [event for event in timeline.read(trace.read_bytes()) if event.tensor in names]
update = timeline.one_update([event for event in events if "CAST" not in event.phase])  # not the broadcast
print(f"{trace.stat().st_size / 1e3:,.0f} kB of timeline; one update has {len(update)} phases, for example")
for event in update[:6]:
    print(f"  {event.tensor or 'all':24} {event.phase:26} {1000 * event.seconds:8.2f} ms")

# %%
tensors = list(dict.fromkeys(event.tensor for event in update if event.tensor))
start = min(event.start for event in update)
looks = {"NEGOTIATE_ALLREDUCE": ("#d1495b", 1.5, "waiting for all workers"), "ALLREDUCE": ("#0b3c5d", 5, "all-reduce")}
figure, ax = axes("time since the exchange of the update before it ended (ms)", "gradient of", size=(8.0, 4.4))
for event in update:
    begin, end = 1000 * (event.start - start), 1000 * (event.end - start)
    if event.phase == timeline.COMPUTE:
        ax.axvspan(begin, end, color="#dddddd", label="no exchange: computing")
    elif event.phase in looks:
        colour, width, _ = looks[event.phase]
        ax.hlines(tensors.index(event.tensor), begin, end, colors=colour, linewidth=width)

# %%
from itertools import pairwise

for colour, width, label in looks.values():
    ax.hlines([], 0, 0, colors=colour, linewidth=width, label=label)
ax.set_yticks(range(len(tensors)), tensors, fontsize=7)
ax.invert_yaxis()
ax.legend(loc="lower left")
transfers = sorted((event for event in update if event.phase == "ALLREDUCE"), key=lambda event: event.start)
exchanges = 1 + sum(later.start >= earlier.end for earlier, later in pairwise(transfers))
waiting = sum(event.seconds for event in update if event.phase.startswith("NEGOTIATE")) / len(tensors)
show(
    figure,
    f"A row for each of {len(tensors)} gradients: a thin line while workers wait, a thick one while it is exchanged. "
    "The last layer's come first.",
    f"One update of {workers} workers, as rank 0 saw it: {1000 * (max(e.end for e in update) - start):.0f} ms. A gradient "
    f"waits {1000 * waiting:.0f} ms on average; {len(transfers)} gradients went out in {exchanges} exchanges.",
)

# %% [markdown]
# Read it from top to bottom, and you see back-propagation: the last layer's gradients are ready first, and are on their
# way while the first layers' are still being computed. Thick lines that begin and end together are gradients that
# travelled together. Horovod collects small gradients, and sends them in one message: **tensor fusion**. An exchange
# takes some time however small it is, so a few large ones are cheaper than many small ones. The lab of this lesson
# (notebook 14) measures by how much.
#
# The grey part is the time between two updates' exchanges: the optimizer's step, the next batch, the forward pass and
# the beginning of the backward pass. Only rank 0 writes a timeline, so a worker that is slow shows as long waiting in
# rank 0's. A timeline grows with every update, so of a long run record a few, not all. (`hvd.start_timeline` and
# `hvd.stop_timeline` do so from within a program that was started with `HOROVOD_TIMELINE=DYNAMIC`.)
#
# ## Overlap
#
# ![](drawings/overlap.svg)
#
# The timeline showed exchange and back-propagation at the same time. `DistributedOptimizer` puts a hook on each weight:
# as soon as its gradient is there, it is announced, and `loss.backward()` goes on. Only `optimizer.step()` waits. So
# the exchange and the backward pass **overlap**.
#
# What can be saved? The exchange can hide behind the backward pass only. During the forward pass there is no gradient
# yet. And the last gradients are ready when the backward pass ends, so their exchange, the *tail*, comes after it. The
# rest of the exchange goes on during the backward pass. At best an update takes
#
# $$ \text{forward} + \max(\text{backward}, \text{exchange} - \text{tail}) + \text{tail}. $$
#
# People often quote $\max(\text{compute}, \text{exchange})$. That is less. A program that waits for the whole exchange
# before the next forward pass cannot reach it.
#
# How much can overlap hide? Move the dials, and find out:

# %%
from lessons import explore

explore("timeline")

# %% [markdown]
# **What to look at:** the bars "overlap on" and "overlap off" beside the marks for the best case and the sum. Then the
# timeline: with overlap on, the exchanges begin inside the grey part. Guess first: who does the exchanging, and is
# there a free core for it? (Notebook 00 printed how many cores your machine has.)

# %%
runs = live("C26", device=device, seed=seed)

# %%
result = saved("C26")

# %% [markdown]
# The theory assumes two *resources*: processors that compute, and a network that sends by itself. On a GPU with a good
# network card that is nearly true. Here one pool of cores does both. Copying through the **loopback**, the network
# inside one machine, and adding up is work for the CPU, so where no core is free, hiding it behind back-propagation
# hides it behind the very cores that it needs. What can be hidden is waiting: for the slower worker, or for Horovod,
# which looks for new gradients only once in each *cycle* of some milliseconds. The verdict says how much of the
# possible time is saved. 100 % would be the best case, and 0 % the sum. A negative number means that an update took
# longer than computing and exchanging one after the other.
#
# Overlap has a price as well, and it can be larger than the gain. Gradients that leave as they come leave in several
# small exchanges, and each pays its latency (notebook 03). Sent after the backward pass, all of them fit into one
# buffer. Compare the thick lines in the two timelines: which of them stand below each other?
#
# Notice also what must be true for overlap to be possible: nothing between a gradient and its exchange may need the
# other gradients. Clipping by the norm of *all* gradients does, so it comes after the exchange: call
# `optimizer.synchronize()`, clip, and then step inside `with optimizer.skip_synchronize():`. The exchange still
# overlaps; only the clipping waits. Clip before the exchange, and each worker clips by another norm.
#
# ## Convert it yourself
#
# You have seen each line. Now turn the program of one worker into one of four. Try it from memory, and look up a line
# only when you are stuck. The next cell copies `cifar_single.py` to `my_workers.py`, beside this notebook. Then it
# launches `my_workers.py` on four workers for some seconds, and says what they do.

# %% tags=["task"]
from lessons.cells import convert

convert.begin()
steps = convert.check()

# %% [markdown]
# Open `my_workers.py` in JupyterLab. Change one thing, save the file, and run the next cell. Go on until all steps are
# done. This order works: the programs know each other, share out the images, average the gradients, start with rank 0's
# weights, draw their own random numbers, add up their counts, and let rank 0 write.

# %% tags=["solution"]
import shutil

from lessons.cells.running import SOURCE

solved = shutil.copy(SOURCE / "cifar_base.py", convert.MINE)

# %%
steps = convert.check()

# %% [markdown]
# ## What breaks when a change is left out
#
# Now we know what each line is for. Do they all matter? The experiment takes the text of `cifar_base.py`, removes one
# change, and runs what is left on real workers, with observers beside it: of the weights, of the images used, of the
# device chosen and of the files written.
#
# **What to look at:** on the left a row for each program, a column for each symptom; 1 is healthy. On the right how far
# the workers' networks go apart. Before you run it: which of these programs will crash?

# %%
runs = live("C27", device=device, seed=seed)

# %%
result = saved("C27")
for arm, (run, *_) in result.runs.items():
    print(f"{arm}: {sum(map(bool, run['errors']))} of {len(run['errors'])} workers ended with an error")

# %% [markdown]
# This is what makes distributed bugs expensive: they are silent. Most of these programs run to the end, print a loss
# that falls, and save a model. Without the broadcast, the workers even go on exchanging gradients; each computes them
# at a place that the others have never been to. Without `DistributedOptimizer` no gradient is exchanged: there are
# several lonely runs from one start, of which one is saved. Loss and correct answers are still reduced, so the accuracy
# that is printed is a mean over different networks. You find such a bug by asking for the symptom: a hash of the
# weights on each worker, the number of distinct images, the device, the writer.
#
# The last symptom, several writers, shows in `metrics.jsonl` and `model.pt`. If several workers write the same file at
# the same time, it may hold lines of each of them, or a worker may fail because another one has already renamed the
# file.
#
# ### The bug zoo
#
# So be the doctor. You get what was measured of a run, and name the disease.


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
# Two real patients, from the live run above:

# %%
healthy = {"reported_accuracy": 0.5, "measured_accuracy": 0.5}  # not measured here; equal, so no symptom
healthy |= {"base_rate": 0.001, "first_rate": 0.001, "test_images": 200, "tested_images": 200}
for arm in ("no_broadcast", "no_sharding"):
    run = runs[arm][0]
    images_used = {"used_images": run["used"] // run["epochs"], "distinct_images": run["distinct"]}
    hashes = {"workers": len(run["hashes"]), "start_hashes": [of[0] for of in run["hashes"]]}
    hashes["top_rate"] = 0.001 * hashes["workers"]  # not measured here either; a right warmup ends there
    print(f"{arm}: {diagnose({**healthy, **images_used, **hashes, 'train_images': run['distinct']})}")

# %% [markdown]
# ## Summary
#
# - Horovod launches one program several times. Rank, size and local rank tell each process who it is; collectives are
#   called by all, or hang.
# - The key changes: init, pin by local rank, wrap the optimizer, broadcast the start (after a restart the optimizer's
#   state and the epoch, too), shard, reduce what you report, write on rank 0.
# - Average gradients and losses; sum counts. Evaluate by counts, so that unequal shards do no harm.
# - Overlap hides an exchange only behind resources that it does not need itself.
# - Almost every change that is left out fails in silence. Look for its symptom.
#
# The lab of this lesson is notebook 14. It has a list to go through when a program is slower with more workers.
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
