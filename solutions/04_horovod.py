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
# `cifar_single.py` is notebook 02's program. `cifar_base.py` is the same program for several workers, and nothing
# more. Here is `cifar_base.py` without its opening comment. A plus marks each line that is new or changed:

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
# Find the line that answers each question. (A *shard* is a worker's part of the images.) Then open the answers.
#
# | question | explained in |
# | --- | --- |
# | Who am I? | MPI's words |
# | Which device is mine? | A GPU each |
# | Do all start with equal weights? | An equal start |
# | How do the weights stay equal? | Average or sum |
# | Which images are mine? | Shards |
# | What number do I report? | Counting the test images |
# | Who writes files? | Break the lines |
#
# <details><summary>The answers</summary>
#
# | question | answer |
# | --- | --- |
# | Who am I? | `hvd.init()`, then `hvd.rank()`, `hvd.size()`, `hvd.local_rank()` |
# | Which device is mine? | `use_device(..., hvd.local_rank(), hvd.local_size())` |
# | Do all start with equal weights? | `hvd.broadcast_parameters(...)` |
# | How do the weights stay equal? | `hvd.DistributedOptimizer(...)`: all apply the same mean gradient |
# | Which images are mine? | `shard(order, hvd.rank(), hvd.size())` |
# | What number do I report? | `hvd.allreduce(...)`: the mean loss, the sum of correct answers |
# | Who writes files? | `if hvd.rank() == 0` |
#
# </details>
#
# Two more lines look like details. The seed is `args.seed + hvd.rank()`, so each worker distorts its images in its own
# way. The *shuffle* uses `args.seed` alone, so all workers cut up the same order.
#
# One line of Horovod's own list is missing: the learning rate, times the number of workers. The program is correct
# without it. It changes how training converges, so it waits for notebooks 05 and 06. Schedules wait for them, too. (A
# schedule may count updates, and with four workers an epoch has a quarter of them.)
#
# ### An equal start
#
# All workers apply the same gradient, so all make the same step. Two networks that begin equal stay equal. Two that
# begin apart stay apart.
#
# In a **broadcast** one worker sends its weights to all others. The script needs it, because each worker has another
# seed. (Would equal seeds do? That is Question 3.)
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
# ### Break the lines
#
# `sabotage` puts a bug into `cifar_base.py`, and runs it on four workers for some seconds. The first bug: no
# `hvd.broadcast_parameters`. The workers start with different weights. Will the program crash?

# %%
from lessons.cells.tasks.sabotage import sabotage

rows = sabotage("no broadcast")

# %% [markdown]
# Nothing crashes, and the program prints no warning. Only the table shows the bug, because it compares the workers'
# weights.
#
# Do all the lines matter? Now we leave out five changes, one at a time. Each time we check the workers' weights,
# images, device and files.
#
# **What to look at:** on the left, a row is a program, and a column is a symptom. A 1 is healthy. On the right you see
# how far apart the workers' networks are. Before you look: which of these programs will crash?

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
# - **Without `DistributedOptimizer`** nobody exchanges gradients. You get several lonely runs, and only one is saved.
#   The printed accuracy is a mean over different networks.
# - **With several writers** a file may mix lines of several workers. Or a worker fails, because another one has already
#   renamed the file.
#
# You find such a bug by asking for its symptom. Count the distinct images. Print the device. See who writes. Compare a
# **hash** of the weights: a short number computed from all of them, so different weights show at once.
#
# <details><summary>On the right of the figure, a curve falls. Do the workers come nearer to each other?</summary>
#
# Not always. The curve is the distance between two workers' weights, divided by the length of the weights. That length
# grows. So the curve can fall although the workers stay as far apart.
#
# </details>
#
# ## A GPU each
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
# `hvd.allreduce` and `DistributedOptimizer` **average** unless you say `op=hvd.Sum`. If the loss is a mean over the
# batch, the average is right: it is the mean over the global batch, if all workers' batches are equally large (notebook
# 03).
#
# What if you sum? The sum of $K$ gradients is $K$ times the average. With SGD each step is then $K$ times too large. If
# you also multiply the learning rate by $K$, you have scaled twice. Adam divides a gradient by its usual size, so it
# hides the mistake. PyTorch's own `dist.all_reduce` sums, so look out when you port code.
#
# For *counts* the sum is right. So the script averages the loss, and sums the correct answers.
#
# ## Shards: is every GPU seeing the same data?
#
# Suppose nobody divides the images, and all seeds are equal. What do four GPUs buy you? All compute the same gradient.
# You get the heat of four GPUs, and the result of one. Nothing fails. Horovod does not divide data for you, because it
# does not know what data is.
#
# Dividing means: one shuffle that all workers agree on, cut up by rank, equally many for each.

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
# (PyTorch's `DistributedSampler` divides the images, too. Call `sampler.set_epoch(epoch)` before each epoch. Without it
# every epoch has the same order, and nothing fails.)
#
# Why must all have equally many? Each update is a collective. A worker with one batch more waits for the others.
#
# - If they have left the loop and wait in another exchange, all wait for ever. Horovod prints a warning every minute.
# - If they have ended, its exchange fails with an error.
# - If they begin the next epoch, it is worse. Horovod averages its last gradient of the old epoch with their first ones
#   of the new epoch, in silence.
#
# ## Counting the test images
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
# This is a good place for a break.
#
# ## Part two: where does the time go?
#
# Your program is right. Is it also fast? In each update the workers exchange all gradients. While they do, they could
# wait, or they could compute. Take a worker whose forward pass takes 20 ms, and whose backward pass takes 40 ms. Its
# exchange takes 30 ms. If it waits for the exchange, a third of each update is lost. So how much of the exchange can be
# hidden?
#
# ### Exchange while you compute
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
# In the drawing each message costs 1 ms, however small it is. So many small messages take longer than few large ones.
# Now move the dials. They begin with the last case of the drawing: six groups, here called *buckets*. **Guess:** is an
# update shorter with three buckets, or with twelve?

# %%
from lessons import explore

explore("timeline")

# %% [markdown]
# With three buckets an update takes 71 ms, and with twelve 64 ms: a smaller bucket can begin earlier, and less is left
# at the end. With 32 it takes 82 ms, because each bucket costs 1 ms.
#
# The exchange can hide only behind the backward pass, because the forward pass has no gradients yet. And the first
# layer's gradients are ready only when the backward pass ends. Their exchange, the *tail*, comes after it. In the
# drawing, one exchange takes 29 ms for its bytes and 1 ms for its message. Each of six groups takes about 5 ms for its
# bytes and 1 ms for its message. Five of them hide behind the backward pass. The last one is the tail. So the update
# takes 20 + 40 + 6 = 66 ms. In general, at best an update takes
#
# $$ \text{forward} + \max(\text{backward}, \text{exchange} - \text{tail}) + \text{tail}. $$
#
# (People often quote $\max(\text{compute}, \text{exchange})$, here 60 ms. It forgets the tail.)
#
# ### Look into a real update
#
# Now we run `cifar_base.py` itself. An environment variable asks Horovod for a **timeline**: a record of what it did
# with each tensor.

# %%
from lessons import horovodrun

trace = Path("timeline.json").resolve()
trace.unlink(missing_ok=True)
lines = horovodrun(
    "cifar_base.py", workers, epochs=epochs, images=images, batch_size=64, seed=seed, device=device,
    environment={"HOROVOD_TIMELINE": str(trace)},
)  # fmt: skip

# %% [markdown]
# Only rank 0 records. We pick a usual update. In the figure, each row is a gradient, and the time goes to the right.
# Read the rows from top to bottom, as the backward pass does: the last layer comes first.
#
# - In the *grey* part, nothing is exchanged yet. The worker makes the optimizer's step, fetches the next batch, and
#   computes the forward pass and the start of the backward pass.
# - A *thin* line waits. A hook has announced this gradient. It waits until all workers have announced it, and until the
#   exchange before it has ended. The workers find the gradient by its **name** (`named_parameters=`), because another
#   worker may finish its gradients in another order.
# - A *thick* line is an exchange. Thick lines that begin and end together travelled in one message. Horovod copies
#   small tensors into one buffer for this. That is **tensor fusion**.
# - At the *dashed* line the last gradient is announced. What comes after it is the tail.

# %%
from lessons.cells.plots.update import one_update, show_update

show_update(one_update(trace))

# %% [markdown]
# This figure tells you what to mend. Look first at the thick lines. If they follow each other without a gap,
# the exchange is the limit: the network, or on one machine the processors. If there are gaps between them, and thin
# lines beside the gaps, the workers wait for each other. In gaps without thin lines, they compute.
#
# <details><summary>What are these phases called in the file?</summary>
#
# `NEGOTIATE_ALLREDUCE` is the waiting. `ALLREDUCE` is the exchange. It has three parts. `MEMCPY_IN_FUSION_BUFFER`
# copies the tensors into the buffer. `GLOO_ALLREDUCE` sends the buffer round the ring (with GPUs it is
# `NCCL_ALLREDUCE`). `MEMCPY_OUT_FUSION_BUFFER` copies the means back. To see the whole record, open `timeline.json` at
# `ui.perfetto.dev`.
#
# </details>
#
# The worker also computes during the exchanges, but Horovod does not record it.
#
# ### Does overlap pay here?
#
# **Guess first.** Is an update on this machine near the best time, or near the time without overlap? Who does the
# exchange here, and is there a free core for it?
#
# **What to look at:** on the left, two joined points are one launch, first without overlap and then with it. Does the
# line fall or rise? The marks *best* and *sum* show what the theory allows. (These are our saved runs, with a smaller
# batch than yours.) On the right, one update of them: the exchange begins after the backward pass, or inside it.

# %%
result = saved("C26", verdict=False)

# %% [markdown]
# The theory has two *resources*: processors that compute, and a network that sends by itself. On a GPU with a good
# network card that is nearly true. Here the same cores do both. Sending through the **loopback**, the network inside
# one machine, is work for the CPU, and so is adding up. If no core is free, each slows the other down. So on this
# machine overlap saves nothing. On GPUs it usually saves time, so leave it on there.
#
# Overlap can even cost time. If each gradient is sent when it is ready, there are several small exchanges, and each
# pays its latency (notebook 03). After the backward pass, one exchange would do. Count the exchanges in the figure of
# your update. With a longer cycle (`HOROVOD_CYCLE_TIME`) Horovod waits a little longer, and fuses more of them. The lab
# (notebook 14) measures what fusion saves.
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
# - Overlap helps only if the exchange does not need the cores that compute.
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
# The lab is notebook 14. There you put bugs into a program yourself. It also has a checklist for a program that gets
# slower with more workers.
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
# <details><summary>Question 2: in your timeline each gradient waits long in NEGOTIATE_ALLREDUCE, and is then exchanged
# in no time. You are offered a faster network. Do you buy it?</summary>
#
# No. The exchange is short already. The workers wait for one of them to announce its gradient: it is slower, gets its
# images later, or shares its core or GPU with somebody. Find out which, and why.
#
# </details>
#
# <details><summary>Question 3: you leave the broadcast out, but set the same seed on all workers before the network is
# made. The hashes of the weights agree. Is the broadcast unnecessary?</summary>
#
# In this run it changes nothing. It will as soon as something draws a random number earlier on one worker, a library's
# version differs, or only one worker reads a checkpoint. And equal seeds have a side effect: the workers also distort
# their images alike, unless you give each its own seed after the network is made.
#
# </details>
