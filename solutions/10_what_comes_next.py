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
# **After this notebook you will be able to** write the program of this course with PyTorch's own DDP and end it well,
# say which technique of communication pays on which link, and name three ways to train a network that is larger than a
# GPU.
#
# **Time:** about {{minutes_10}} minutes, and less than one more of waiting on 2 CPU cores. **Builds on:** notebooks 03
# and 04, and the cost of an exchange in notebook 09.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# You have written a program that trains one network with four workers. What will you meet when you do this at work?
# Three things: another library, links that are too slow, and networks that do not fit on one GPU. This notebook has a
# part for each of them. You can read each part by itself.

# %% [markdown]
# ## The same in PyTorch's own words
#
# PyTorch brings `DistributedDataParallel` (DDP; Li and others 2020, arXiv:2006.15704), launched by `torchrun`. It is
# the same algorithm, so it must give the same numbers. Below are two whole programs that make ten updates on the same
# shards of made-up data, in double precision. We run both with two workers, and compare.

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
Path("with_horovod.py").write_text(HOROVOD)
written = Path("with_ddp.py").write_text(DDP)

# %%
import os
import subprocess
import sys

here = Path(sys.executable).parent
environment = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
for command in (
    [here / "horovodrun", "-np", "2", sys.executable, "with_horovod.py"],
    [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "with_ddp.py"],
):
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    print(Path(command[0]).name, *command[1:5], "... done")

# %%
import torch

mine, theirs = (torch.load(name, weights_only=True)["weight"] for name in ("horovod.pt", "ddp.pt"))
difference = ((mine - theirs).norm() / mine.norm()).item()
print(f"relative difference of the weights after ten updates: {difference:.1e}")
assert difference < 1e-12

# %% [markdown]
# A number in double precision has about 16 digits. So a relative difference of about 1e-16 means that the weights
# differ in their last digits at most. With two workers it can be exactly 0, because the sum of two numbers has one
# order only. With more workers, the two libraries may add the gradients in another order, and then a last digit
# differs. Read the two programs side by side:
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
# Two differences are easy to miss. Horovod's all-reduce takes the mean, PyTorch's takes the sum. And
# `DistributedSampler` **pads**: if the images cannot be divided evenly among the workers, it repeats some of them. A
# test accuracy is then slightly wrong, unless you count each image once.
#
# DDP exchanges the gradients in each `backward()`. Inside `with wrapped.no_sync():` it exchanges nothing, and only adds
# the gradient to the worker's own. The next `backward()` outside exchanges the sum. So an update may take several
# batches for one exchange. The lab does this.
#
# Do not confuse DDP with the older `torch.nn.DataParallel`. That is one process with several threads. It copies the
# network to all GPUs for every batch, and it works on one host only. PyTorch's own documentation advises to use DDP
# instead.
#
# ### The ending
#
# Two lines of the DDP program look as if they did nothing: `import torch.distributed.nn` and `del wrapped`. Take out
# the first one, and the program still trains and saves. But in some launches a worker crashes at the very end, after
# all its work is done. The last line that you see is `terminate called without an active exception`. We launched the
# program many times. The program called "late import" lacks the import at the top. `DistributedDataParallel(net)` then
# imports the module itself, after the group has been made:

# %%
from benchmarks import endings

for name in ("with_ddp", endings.LATE):
    counts = endings.read(name)
    print(f"{name}: {counts['failures']} of {counts['launches']} launches failed")

# %% [markdown]
# We saw too few crashes here to give a rate. But the cause is known, and two lines avoid it. The saved weights are
# whole, because the crash comes after that. But the launcher reports a failed run, and a script that waits for success
# stops.
#
# Why does it crash? `init_process_group` makes a **process group**: the object through which a worker talks to the
# others. It has threads of its own, which exchange the gradients. A thread may still be at work while Python shuts
# down. Python then stops it in the middle of its C++ code, and the whole process aborts. So the threads must end
# before. This is what `dist.destroy_process_group()` is for. But as long as a variable still holds the group, its
# threads go on. Two things may hold it:
#
# - **The DDP wrapper.** So delete the wrapper first. If your training is a function, its variables go when it returns.
#   Then call `dist.destroy_process_group()` after that.
# - **The module `torch.distributed.nn`**, if it is imported while there is a group. `DistributedDataParallel(net)`
#   imports it. If you have imported it before `init_process_group`, there was no group yet, and it keeps nothing.
#
# We tried this with Gloo on CPUs only.

# %% [markdown]
# ## Which technique for which link?
#
# In lesson 09 you saw that the link decides how many workers are worth having. What can you do if your link is slow?
# You can exchange the gradients earlier, while the workers still compute. You can send fewer bytes. Or you can exchange
# less often. **Before you read on, guess** which of these three helps most on a slow link.
#
# On one machine none of them brings much, because the network inside a machine (its *loopback*) is fast. The lab of
# lesson 04 shows that. In the next experiment, the workers train on hosts whose links carry 50 Mbit/s to 10 Gbit/s. The
# thick line in each panel, **one group**, is the plain way: all gradients are exchanged at once, after the backward
# pass. The black line, **no exchange**, is not a way to train. There each worker trains alone. Each panel has one
# family of techniques:
#
# - **When to exchange.** *Stock Horovod* is Horovod as it is installed. The others exchange each gradient when it is
#   ready, or four groups of gradients. PyTorch's DDP groups them, too. All begin during the backward pass.
# - **Fewer bytes.** *float16* sends half the bytes. With *the largest 1 %* (top-k), each worker sends its largest
#   values only, and adds the others to its next gradient. *PowerSGD* replaces a matrix of gradients by the product of
#   two thin ones (Vogels and others 2019, arXiv:1905.13727).
# - **Fewer exchanges.** The batch is *4 times as large*. Or a worker adds the gradients of *4 batches*, and then
#   exchanges the sum once. Or it makes *8 local updates* by itself, and then the weights are averaged.

# %%
from lessons import all_guesses, saved

result = saved("links")

# %% [markdown]
# On the fastest link, the ways that exchange after each batch keep at least three quarters of the plain way's speed.
# Only stock Horovod is much slower. (Its background threads take time from the cores that compute. Lab 14 shows how our
# scripts avoid this.) When to exchange changes little on slow links. How many bytes, and how often, changes much. At
# 100 Mbit/s, with 16 images a worker, the plain way loses most of the speed, and top-k and PowerSGD keep most of it. A
# larger batch is faster for another reason as well: the processor needs less time for each of its images. The black
# line goes up and down, because other programs were busy at times.
#
# The sentence below the figure is about the cost model of lesson 09. We fitted it to some of these runs, and it
# predicted the speed of the others. The median error means: half of these predictions were wrong by less than this. The
# page `docs/where_it_pays.md` says from which link on each technique pays, predicted and measured.
#
# This is speed alone. A compressed gradient is not the gradient, and local updates are not those of one worker. Whether
# the accuracy suffers is a question of its own.

# %% [markdown]
# ## A network that is larger than a GPU
#
# ![](drawings/memory.svg)
#
# DDP and Horovod keep the whole network on each worker, with its gradients and the optimizer's state. This is called
# *replicated* data parallelism. There are three ways to need less. In all of them, there is one process for each GPU:
#
# - **Pipeline** (Huang and others 2018): each GPU has some of the layers. The lab of lesson 03 cuts a network in two like this.
#   The batch is cut into small parts, called micro-batches. While the second GPU works on the first part, the first GPU
#   works on the second part, so that both are busy.
# - **Tensor parallel** (Shoeybi and others 2019): each GPU has a part of each layer.
# - **ZeRO** (Rajbhandari and others 2019; in PyTorch: FSDP, Zhao and others 2023) is still data parallelism. Each
#   worker has images of its own. But it keeps only a share of the weights, the gradients and the optimizer's state.
#   Before a layer computes, the workers gather its weights (an all-gather). During the backward pass, layer by layer,
#   each worker gets the mean gradient of its own share only (a reduce-scatter). These are the two halves of the ring of
#   notebook 03. An all-reduce does each half once. Here the all-gather is done twice, because the weights are gathered
#   for the forward and for the backward pass. So the workers send 1.5 times the bytes. In the drawing, *stage 1*
#   divides the optimizer's state only. *Stage 2* also divides the gradients. *Stage 3* divides the weights as well.
#
# Large runs use several ways at once. The processes then form a **mesh**, a table of ranks. With 64 GPUs, for instance,
# 8 groups can share the data, and the 8 processes of a group can share each layer. A process has one rank in each
# direction: one that says which images it gets, and one that says which part of the layers it has. Tensor parallelism
# exchanges activations in each layer, so its group stays inside one host, where the links are fast.
#
# The lab of this lesson (notebook 20) runs FSDP and measures its memory and its bytes. There you also save gradient
# exchanges, go on with another number of workers, read a trace, and ask whether a network of 7 billion weights fits.

# %% [markdown]
# ## Summary
#
# - Horovod and DDP compute the same. Horovod wraps the optimizer, and its all-reduce takes the mean. DDP wraps the
#   network, and PyTorch's all-reduce takes the sum.
# - A process group has threads of its own. They must end before Python does: delete the wrapper, then destroy the
#   group.
# - On a slow link, it helps to send fewer bytes or to exchange less often. To begin the exchange earlier changes little.
# - A network that is larger than a GPU is cut: in layers (pipeline), in parts of each layer (tensor parallel), or in
#   shares of weights, gradients and the optimizer's state (ZeRO).
#
# The lines to keep:
#
# ```python
# import torch.distributed.nn  # before the group exists
# dist.init_process_group("gloo")
# wrapped = DistributedDataParallel(net)
# with wrapped.no_sync():
#     loss.backward()  # adds to the worker's own gradient, and exchanges nothing
# del wrapped
# dist.destroy_process_group()
# ```
#
# ## Your guesses
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
# <details><summary>The weights of a network have 6 GB in float32. Adam keeps two numbers for each weight. Can a GPU with
# 16 GB train it with DDP? And four of them with stage 3 of ZeRO?</summary>
#
# With DDP each GPU needs 6 GB for the weights, 6 GB for the gradients and 12 GB for Adam. That is 24 GB, and the
# activations come on top. So it cannot. With stage 3 each of four GPUs keeps a quarter of that, which is 6 GB. So 10 GB
# are left for the activations, and for the layer whose weights have just been gathered.
#
# </details>
