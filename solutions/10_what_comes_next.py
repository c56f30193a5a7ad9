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
# # 10 What comes next
#
# **After this notebook you will be able to** write the program of this course with PyTorch's own DDP, say which
# technique of communication helps on which link, and compute whether a network fits on your GPUs.
#
# **Time:** about {{minutes_10}} minutes, and less than one minute of waiting on 2 CPU cores. **Builds on:** notebooks
# 03 and 04, and the cost of an exchange in notebook 09.

# %% [markdown]
# You have written a program that trains one network with four workers. What will you meet when you do this at work?
# Three things: another library, links that are too slow, and networks that do not fit on one GPU. This notebook has a
# part for each of them.
#
# ## The same in PyTorch's own words
#
# PyTorch brings `DistributedDataParallel` (DDP; Li and others 2020, arXiv:2006.15704), launched by `torchrun`. It is
# the same algorithm, so it must give the same numbers. Here is a whole program with Horovod. It makes ten updates on
# made-up data, in double precision.

# %%
from pathlib import Path

SHARED = """
def updates(net, optimizer, rank, size):
    images = torch.randn(640, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    labels = images[:, :10].argmax(1)
    for part in range(10):
        mine = torch.arange(64 * part, 64 * (part + 1))[rank::size]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images[mine]), labels[mine]).backward()
        optimizer.step()
"""
HOROVOD = f"""
import horovod.torch as hvd
import torch
{SHARED}
hvd.init()
torch.manual_seed(hvd.rank())
net = torch.nn.Linear(32, 10).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates(net, optimizer, hvd.rank(), hvd.size())
if hvd.rank() == 0:
    torch.save(net.state_dict(), "horovod.pt")
"""
written = Path("with_horovod.py").write_text(HOROVOD)

# %% [markdown]
# This table says what each part is called in both libraries. One word is new. A **process group** is the object through
# which a worker talks to the others. In Horovod, `hvd.init()` makes it, and you never see it.
#
# | what | Horovod | PyTorch DDP |
# | --- | --- | --- |
# | launch | `horovodrun -np 4 python train.py` | `torchrun --nproc-per-node 4 train.py` |
# | begin | `hvd.init()` | `dist.init_process_group("gloo")`, or `"nccl"` with GPUs |
# | who am I | `hvd.rank()`, `hvd.size()`, `hvd.local_rank()` | `dist.get_rank()`, `dist.get_world_size()`, `LOCAL_RANK` |
# | device | `torch.cuda.set_device(hvd.local_rank())` | the same with `int(os.environ["LOCAL_RANK"])` |
# | equal start | `hvd.broadcast_parameters(...)` | done by `DistributedDataParallel(net)` |
# | mean gradient | `hvd.DistributedOptimizer(...)`: around the optimizer | `DistributedDataParallel(net)`: around the network |
# | batch norm's running statistics | averaged by you | worker 0's buffers are sent at each forward pass |
# | a number from all | `hvd.allreduce(x)`: a mean, unless told otherwise | `dist.all_reduce(x)`: a sum, in place |
# | shards | your indices, or `DistributedSampler` | `DistributedSampler`, with `set_epoch` for a new shuffle |
# | uneven batches | `hvd.join()` at the end of the epoch | `with wrapped.join():` |
# | one writer | `if hvd.rank() == 0:` | `if dist.get_rank() == 0:` |
# | end | nothing to do | `del wrapped`, then `dist.destroy_process_group()` |
# | several hosts | `-H alpha:4,beta:4` | `--nnodes 2 --rdzv-backend c10d --rdzv-endpoint alpha:29500`, typed on each |
#
# (`rdzv` is short for rendezvous, the place where the workers of several hosts meet. `LOCAL_RANK` is a variable of the
# environment that `torchrun` sets.)
#
# **Your turn.** Turn the program into one that uses DDP, and that saves its weights in `my_ddp.pt`. The function
# `updates` stays as it is: DDP returns a network, so give it this one. Change the text in the next cell, from
# `hvd.init()` on. As long as that line is there, your program is skipped. Our program follows below. Do not look yet.

# %%
MINE = f"""
import torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists
from torch.nn.parallel import DistributedDataParallel
{SHARED}
hvd.init()
torch.manual_seed(hvd.rank())
net = torch.nn.Linear(32, 10).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates(net, optimizer, hvd.rank(), hvd.size())
if hvd.rank() == 0:
    torch.save(net.state_dict(), "my_ddp.pt")
"""
written = Path("my_ddp.py").write_text(MINE)
unchanged = "hvd.init()" in MINE

# %% [markdown]
# Here is ours. The last two lines look as if they did nothing, and so does the import of `torch.distributed.nn`. Keep
# all three: they end the threads of the process group. Without them, a worker sometimes crashes after all its work. The
# lab of this lesson, notebook 20, counts such crashes, and says why they happen.

# %%
DDP = f"""
import torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists
from torch.nn.parallel import DistributedDataParallel
{SHARED}
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Linear(32, 10).double()
wrapped = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
updates(wrapped, optimizer, dist.get_rank(), dist.get_world_size())
if dist.get_rank() == 0:
    torch.save(net.state_dict(), "ddp.pt")
del wrapped  # the wrapper holds the group
dist.destroy_process_group()  # now nothing holds the group, so its threads end here
"""
written = Path("with_ddp.py").write_text(DDP)

# %% [markdown]
# The next cell runs the programs with two workers each, and compares their weights. (`--standalone` tells `torchrun`
# that all workers are on this host.)

# %%
import torch

from lessons.cells.programs import launch


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """How far two networks' weights are apart, as a share of their length."""
    return ((one - other).norm() / other.norm()).item()


launch("horovodrun", "with_horovod.py")
launch("torchrun", "with_ddp.py")
weights = {name: torch.load(name, weights_only=True)["weight"] for name in ("horovod.pt", "ddp.pt")}
if unchanged:
    print("my_ddp.py still begins with hvd.init(), so it is skipped")
else:
    launch("torchrun", "my_ddp.py")
    weights["my_ddp.pt"] = torch.load("my_ddp.pt", weights_only=True)["weight"]
for name, weight in weights.items():
    print(f"{name}: relative difference from Horovod's weights {distance(weight, weights['horovod.pt']):.1e}")

# %% [markdown]
# A number in double precision has about 16 digits. So if the weights differ by about 1e-16, they differ in their last
# digits at most. With two workers the difference is often exactly 0, because the sum of two numbers has one order only.
# With more workers, the two libraries may add the gradients in another order, and then a last digit differs.
#
# Two differences are easy to miss. DDP takes the mean of the gradients, as Horovod does. But where *you* call an
# all-reduce, Horovod's takes the mean, and PyTorch's takes the sum. And `DistributedSampler` **pads**: if the images
# cannot be divided evenly among the workers, it repeats some of them. A test accuracy is then slightly wrong, unless
# you count each image once.
#
# DDP exchanges the gradients in each `backward()`. Inside `with wrapped.no_sync():` a `backward()` exchanges nothing.
# It adds the new gradient to the one that this worker has already. The next `backward()` outside adds its own gradient,
# and exchanges the sum over the batches. So four batches can share one exchange. (Divide each loss by 4 if you want the
# mean over the batches.) The lab of this lesson, notebook 20, measures what that brings.
#
# Do not confuse DDP with the older `torch.nn.DataParallel`. That is one process with several threads. It copies the
# network to all GPUs for every batch, and it works on one host only. PyTorch's own documentation advises to use DDP
# instead.
#
# ### Which bug shows?
#
# Here are two bugs that people make with DDP. The first program trains `net` in place of `wrapped`. In the second one,
# each worker uses all images of a batch. We run each with two workers. **Before you run the cell, guess** for each
# program: does it crash? Do the two workers end with equal weights? Are these the weights of the right program?

# %%
SAVED_BY_ONE = 'if dist.get_rank() == 0:\n    torch.save(net.state_dict(), "ddp.pt")'
SAVED_BY_ALL = 'torch.save(net.state_dict(), f"worker_{dist.get_rank()}.pt")'
BUGS = {
    "net in place of wrapped": ("updates(wrapped,", "updates(net,"),
    "all images on each worker": ("[rank::size]", ""),
}

for bug, (right, wrong) in BUGS.items():
    Path("buggy_ddp.py").write_text(DDP.replace(right, wrong).replace(SAVED_BY_ONE, SAVED_BY_ALL))
    print(bug)
    launch("torchrun", "buggy_ddp.py")
    zero, one = (torch.load(f"worker_{rank}.pt", weights_only=True)["weight"] for rank in range(2))
    print(f"  between the two workers: {distance(zero, one):.1e}")
    print(f"  from the right program: {distance(zero, weights['ddp.pt']):.1e}")

# %% [markdown]
# Neither program crashes. In the first one, each worker trains a network of its own. DDP prepares the exchange in the
# call `wrapped(images)`. If you call `net`, nothing is exchanged. In the second one even the weights are right. Each
# worker computes the mean gradient of all images by itself, and the mean of two equal gradients changes nothing. So two
# workers take as long as one. To find the first bug, compare the workers' weights. To find the second one, count the
# images.
#
# ## Which technique for which link?
#
# In lesson 09 you saw that the link decides how many workers are worth having. What can you do if your link is slow?
# You can exchange the gradients earlier, while the workers still compute. You can send fewer bytes. Or you can exchange
# less often. **Before you read on, guess** which of these three helps most on a slow link.
#
# On one machine none of them brings much, because the network inside a machine (its *loopback*) is fast. The lab of
# lesson 04 shows that. In the next experiment a small ResNet trains on two hosts, with two workers on each. The hosts
# are made on one computer, as in lesson 09, and their link carries 50 Mbit/s to 10 Gbit/s. The thick line in each
# panel, **one group**, is the plain way: all gradients are exchanged at once, after the backward pass. The black line,
# **no exchange**, is there for comparison: each worker trains a network of its own.
#
# - **Earlier.** *Stock Horovod* is Horovod as it is installed. It begins to exchange while the backward pass still
#   computes. So do *PyTorch's DDP*, and two ways of our scripts: *each gradient when it is ready* hands each gradient
#   to Horovod at once, and Horovod sends those together that are ready at the same time. *Four groups, overlapped*
#   collects the gradients in four groups, and hands over each group when it is complete.
# - **Fewer bytes.** *float16* sends half the bytes. With *the largest 1 %* (top-k), each worker sends its largest
#   values only, and adds the rest to its next gradient. *PowerSGD* replaces a matrix of gradients by the product of two
#   narrow matrices, which have fewer numbers (Vogels and others 2019, arXiv:1905.13727).
# - **Fewer exchanges.** The batch is *4 times as large*. Or a worker adds the gradients of *4 batches*, and then
#   exchanges the sum once. Or it makes *8 local updates* by itself, and then the weights are averaged.

# %%
from lessons import all_guesses, saved

result = saved("links", verdict=False)

# %% [markdown]
# First look at the black line. These workers exchange nothing, so it should be flat. It goes up and down, because other
# programs were busy at times, and there is one run of each kind. So believe large differences only.
#
# **To begin earlier changes little on slow links.** If an exchange takes much longer than the backward pass, only a
# small part of it can hide behind the backward pass. **To send less changes much.** At 100 Mbit/s, with 16 images a
# worker, the plain way loses most of the speed, and top-k and PowerSGD keep most of it. A larger batch is faster for
# another reason as well: the processor needs less time for each of its images.
#
# On the fastest link, most ways that exchange after each batch keep at least three quarters of the plain way's speed.
# Stock Horovod exchanges after each batch, too, and it is much slower. Its background threads take time from the cores
# that compute. (Lab 14 shows how our scripts avoid this. With GPUs, the processor has time for these threads.)
#
# This is speed alone. What does each technique cost?
#
# | technique | what it saves | what it may cost |
# | --- | --- | --- |
# | earlier (overlap) | waiting, if the exchange is no longer than the backward pass | processor time for its threads; the mean gradient is the same |
# | float16 | half of the bytes | very small gradients become zero |
# | top-k, PowerSGD | nearly all bytes | the gradient is only approximate, so compare the accuracy |
# | larger batch, several batches | most of the exchanges | the global batch grows: lessons 05 and 06 |
# | local updates | most of the exchanges | the workers' weights differ in between, which may cost accuracy |
#
# The page `docs/where_it_pays.md` says from which rate of the link each technique begins to win. It also shows how well
# the cost model of lesson 09 predicts these speeds.

# %% [markdown]
# ## A network that is larger than a GPU
#
# A language model with 7 billion weights is not a large one today. How much memory does its training need? In float32 a
# weight has 4 bytes, and its gradient has 4, too. Adam keeps two means for each weight, which have 8 bytes together.
# That is 16 bytes for each weight, so 112 GB. (The inputs of the layers, the **activations**, come on top.) A large GPU
# has 80 GB. And Horovod and DDP keep all of this on *each* worker. So here, more workers do not help at all.
#
# **ZeRO** divides what each worker keeps (Rajbhandari and others 2019; in PyTorch it is called FSDP, for fully sharded
# data parallel, Zhao and others 2023). It has three stages. The drawing shows the bytes for each weight on one of four
# workers:
#
# ![](drawings/memory.svg)
#
# Write a function that says how many bytes each worker keeps.


# %% exercise="bytes_on_each"
def bytes_on_each(weights: int, workers: int, stage: int) -> float:
    """The bytes on each worker, in float32 with Adam, for stage 0 (DDP) to stage 3 of ZeRO."""
    ### BEGIN SOLUTION
    parts = [4, 4, 8]  # the bytes of a weight, of its gradient, and of Adam's two means
    whole = 3 - stage  # so many of these parts stay whole on each worker
    return weights * (sum(parts[:whole]) + sum(parts[whole:]) / workers)
    ### END SOLUTION


# %% [markdown]
# **Before you run the next cell, guess:** how many GPUs with 80 GB does the model need, in each stage? And a model that
# is ten times as large?

# %%
for weights_of in (7_000_000_000, 70_000_000_000):
    print(f"{weights_of:,} weights")
    for stage in range(4):
        fitting = [gpus for gpus in range(1, 65) if bytes_on_each(weights_of, gpus, stage) <= 80e9]
        print(f"    stage {stage}:", f"{fitting[0]} GPUs" if fitting else "not even with 64 GPUs")

# %% [markdown]
# The activations come on top, so a real run needs more.
#
# ZeRO is still data parallelism: each worker has images of its own. In stage 3, each worker keeps only a share of the
# weights. So before a layer computes, the workers gather its weights. This is an *all-gather*. After the backward pass
# of a layer, each worker gets the mean gradient of its own share. This is a *reduce-scatter*. These two are the halves
# of the ring in lesson 03. An all-reduce is one reduce-scatter and one all-gather. Stage 3 needs one reduce-scatter and
# two all-gathers, because the weights are gathered for the forward and for the backward pass. So it sends three halves
# in place of two: 1.5 times the bytes.
#
# There are two more ways to divide a network:
#
# - **Pipeline** (Huang and others 2018): each GPU has some of the layers. The lab of lesson 03 cuts a network in two
#   like this. The batch is cut into small parts, called micro-batches. While the second GPU works on the first part,
#   the first GPU works on the second part, so that both are busy.
# - **Tensor parallel** (Shoeybi and others 2019): each GPU has a part of each layer. The GPUs exchange activations in
#   every layer. So they should be in one host, where the links are fast.
#
# Large runs use several ways at once. The processes then form a **mesh**, a table of ranks. For example, two hosts have
# four GPUs each. A row is a host:
#
# | | part 0 of each layer | part 1 | part 2 | part 3 |
# | --- | --- | --- | --- | --- |
# | **alpha**: one half of the images | rank 0 | rank 1 | rank 2 | rank 3 |
# | **beta**: the other half | rank 4 | rank 5 | rank 6 | rank 7 |
#
# The four workers of a row compute each layer together. The two workers of a column have the same part of the network
# and other images, so they average their gradients.
#
# The lab of this lesson (notebook 20) runs FSDP, and measures its memory and its bytes. There you also read the trace
# of an update, and go on from a checkpoint with another number of workers.

# %% [markdown]
# ## Summary
#
# - Horovod and DDP compute the same mean gradient. Horovod wraps the optimizer, and DDP wraps the network.
# - `hvd.allreduce` takes the mean, and `dist.all_reduce` takes the sum.
# - A DDP program ends with two more lines: delete the wrapper, then destroy the process group.
# - On a slow link, it helps to send fewer bytes or to exchange less often. To begin earlier changes little.
# - Training by Adam in float32 needs 16 bytes for each weight. ZeRO divides them among the workers.
# - A pipeline divides the layers of a network, and tensor parallelism divides each layer.
#
# The lines to keep:
#
# ```python
# import torch.distributed.nn  # before the group exists
# dist.init_process_group("gloo")
# wrapped = DistributedDataParallel(net)
# loss = cross_entropy(wrapped(images), labels)  # not net(images)
# loss.backward()  # also averages the gradients of all workers
# optimizer.step()
# del wrapped
# dist.destroy_process_group()
# ```
#
# ## Your guesses
#
# This is the end of the course. It began with four workers that trained a worse network, although every log looked
# healthy. If you meet such a case now, you know the suspects, and an experiment for each of them.
#
# You have made guesses in the lessons. How good were they?

# %%
all_guesses()

# %% [markdown]
# ## Questions
#
# <details><summary>Four workers count their right answers. Each calls <code>dist.all_reduce(hits)</code> and prints
# <code>hits / images</code>, where <code>images</code> is its own number of test images. What is wrong?</summary>
#
# PyTorch's all-reduce takes the sum. So the hits are those of all workers, and the images are those of one worker only.
# The result is about four times too large. Horovod's all-reduce would have given the mean of the hits.
#
# </details>
#
# <details><summary>Your link carries 100 Mbit/s, and each worker has batches of 16 images. A colleague wants to begin
# the exchange earlier. What do you answer?</summary>
#
# The exchange takes much longer than the backward pass there. So even if it begins earlier, the workers wait. It is
# better to send fewer bytes, or to exchange less often.
#
# </details>
#
# <details><summary>Stage 3 of ZeRO sends 1.5 times the bytes of DDP. Which exchange is added?</summary>
#
# The second all-gather. The weights of a layer are gathered for the forward pass, and once more for the backward pass,
# because no worker keeps them in between.
#
# </details>
