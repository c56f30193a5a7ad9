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
# # 09 Beyond one machine
#
# **After this notebook you will be able to** estimate how many workers a training run can use, start workers on several
# hosts, know what happens when one of them goes away, and read PyTorch's own DDP as fluently as Horovod.
#
# **Time:** 30 minutes on 2 CPU cores, less than one of them waiting. **Builds on:** the ring all-reduce of notebook 03,
# and notebook 04.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## What does an exchange cost?
#
# A message of $n$ bytes takes about $\alpha + \beta n$ seconds: a latency, whatever its size, and a time for each byte
# (Hockney 1994). A ring all-reduce among $K$ workers sends $2(K-1)$ messages one after the other, of $n/K$ bytes each:
#
# $$t(K, n) = 2(K-1)\,\alpha + 2\,\frac{K-1}{K}\,n\,\beta.$$
#
# The second term hardly grows with $K$: that is the beauty of the ring. The first one does. And there is a third cost
# that no network can mend: all workers wait for the **slowest**. If computing an update takes a random time, the
# expected maximum over $K$ workers grows with $K$, even if nobody is slow for long. Such workers are called stragglers.
#
# Horovod may add one more: its background threads must agree that all are ready, once for each exchange. So the model
# has three constants. Is synchronous training impractical past tens of GPUs, as one of our sources says? We measure the
# constants here, on real workers, and how much the time of an update varies. With these we simulate thousands of
# workers, since we do not have them. Look at where each line crosses one half: to the right of it, workers wait more
# than they compute.

# %%
from lessons import live, saved

runs = live("C14", device=device, seed=seed)

# %% [markdown]
# The full experiment repeats this with more updates, on an otherwise idle machine.

# %%
result = saved("C14")

# %% [markdown]
# Read the cases as pairs. A faster processor makes the *same* network scale worse: it computes less long for each byte.
# A network with more computing for each parameter scales better, and so does a larger per-worker batch, which is the
# real reason for large-batch training (and for all of notebook 06). What the simulation leaves out: exchange that
# overlaps back-propagation (notebook 04) hides much of its cost; real interconnects have several levels, and good
# all-reduces use trees for latency and rings within a host. Records of training on thousands of processors rest on
# these.
#
# Mind $\alpha$ above all. Here it holds the pace at which Horovod looks for work, once a millisecond, and with four
# workers on few cores the time until a process gets its turn: hundreds of times what it is in a cluster (microseconds).
# Only the last case makes it smaller: compare it with the one before. And if the constant for an all-reduce comes out as
# 0, do not conclude that agreeing is free: with teams of two and four workers only, a cost that grows with the workers
# explains the times as well, and is counted in $\alpha$.
#
# You can move the assumptions yourself. Here only the number of parameters changes; the computing time stays that of our
# small network, and nobody is slow:

# %%
import numpy as np

from benchmarks.methods.ring_all_reduce import fit, ring

constants = fit(runs["machine"][0])
update = np.median(runs["machine"][0]["updates"])
for parameters in (0.5e6, 25e6, 1e9):
    exchange = [ring(constants, k, 4 * parameters) for k in (2, 16, 256, 4096)]
    shares = ", ".join(f"{update / (update + seconds):.1%}" for seconds in exchange)
    print(f"{parameters / 1e6:6.1f} M parameters, an update of {update:.2f} s: {shares} (2, 16, 256, 4,096 workers)")

# %% [markdown]
# ## Several hosts
#
# Nothing in a program changes. The launcher is told where to start how many workers:
#
#     horovodrun -np 8 -H alpha:4,beta:4 python train.py
#
# It logs in to each host by `ssh` (without a password, so with keys), so the same program, the same environment and the
# data have to be at the same path on each. Then `hvd.rank()` runs from 0 to 7, while `hvd.local_rank()` counts from 0 to
# 3 on each host: this is why a GPU is chosen by *local* rank. `--network-interface eth0` helps where hosts have several
# networks and the workers do not find each other. "Only one worker writes" now means `rank() == 0`; "each host fetches
# the data once" means `local_rank() == 0`.
#
# ## Elastic training: when workers come and go
#
# A synchronous run ends when one worker dies. **Elastic** Horovod keeps the state at agreed points, and when the set of
# workers changes, the rest go back to the last one and continue with new ranks and a new size:
#
#     state = hvd.elastic.TorchState(model=net, optimizer=optimizer, epoch=0)
#
#     @hvd.elastic.run
#     def train(state):
#         while state.epoch < epochs:
#             ...                # an epoch; shards from hvd.rank() and hvd.size(), which may differ each time
#             state.epoch += 1   # before the commit, or this epoch would be trained twice
#             state.commit()     # what is kept; a change of workers is noticed here
#
#     train(state)
#
# started with `horovodrun -np 4 --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh python train.py`. Two things to
# think of. The global batch changes with the size, so the learning rate has to (notebook 05). And with a commit after each
# epoch, a failure costs the whole epoch, which is repeated with new shards; if you commit more often, you must also keep
# which images are done: `hvd.elastic.ElasticSampler` does that. We do not run it here.
#
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
# **The ending.** Two lines of the DDP program look as if they could go: `import torch.distributed.nn` and `del wrapped`.
# Take one of them out, and the program still trains and saves. But in some launches a worker then crashes at the very
# end, after all work is done. The last line that you see is `terminate called without an active exception`.
#
# `init_process_group` makes a **process group**: the object through which this worker talks to the others. It has threads
# of its own, which exchange the gradients. `dist.destroy_process_group()` ends these threads, but only if no other
# object still refers to the group. Two things refer to it:
#
# - **The DDP wrapper does.** So delete it first. If your training is a function, its variables go when it returns: then
#   call `dist.destroy_process_group()` after the function has returned. The network and the optimizer do not refer to
#   the group.
# - **The module `torch.distributed.nn` does, if it is imported late.** Its functions begin like
#   `def all_reduce(tensor, op=ReduceOp.SUM, group=group.WORLD)`. Python computes a default value once, when the module is
#   imported, and keeps it. `group.WORLD` is the process group if there is one by then. `DistributedDataParallel(net)`
#   imports the module itself, and at that moment there is a group. So import it earlier, before `init_process_group`:
#   then the default value is `None`, and a later import changes nothing.
#
# What goes wrong otherwise? A thread of the group is still there while Python shuts down. It may still have to free a
# Python object that belonged to the last gradient. For that it needs the lock that lets one thread at a time use Python,
# the GIL. While Python shuts down, it ends every thread that asks for this lock. The thread is in the middle of C++ code
# that must not be ended so, and the process aborts. We launched the program many times, with the early import and
# without it:

# %%
from benchmarks import endings

for name in ("with_ddp", endings.LATE):
    counts = endings.read(name)
    print(f"{name}: {counts['failures']} of {counts['launches']} launches failed")

# %% [markdown]
# What the program saved is whole, because it crashes after that. But a launcher reports a failed run, and a script that
# waits for success stops. How often it happens depends on how busy the machine is. We tried Gloo on CPUs alone.
#
# Line by line:
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
# | uneven batches | not allowed (a join operation exists) | `with wrapped.join():` |
# | one writer | `if hvd.rank() == 0:` | `if dist.get_rank() == 0:` |
# | end | nothing to do | `del wrapped`, then `dist.destroy_process_group()` |
# | several hosts | `-H alpha:4,beta:4` | `--nnodes 2 --rdzv-backend c10d --rdzv-endpoint alpha:29500`, typed on each |
#
# Two differences bite. Horovod's all-reduce *averages* by default, PyTorch's *sums*. And `DistributedSampler` **pads**:
# where the workers do not divide the images evenly it repeats some, which makes a test accuracy slightly wrong, unless
# you count each image once.
#
# Do not take `torch.nn.DataParallel` for either of them: it is one process with several threads, copies the network to
# all GPUs for every batch, and gathers on the first one. It stays on one host, and PyTorch's own documentation advises to
# use DDP in its place.
#
# **Larger than one GPU.** If the *network* does not fit a worker, cut it: layer by layer (pipeline; Huang and others
# 2018), within layers (tensor parallel; Shoeybi and others 2019), or keep only a share of weights and optimizer state
# on each worker (ZeRO, Rajbhandari and others 2019; PyTorch's is FSDP, Zhao and others 2023). Notebook 03 cut a network
# in two, without the micro-batches that keep both halves busy. One worker then spans several GPUs, so give each worker
# a *group* of GPUs: with two GPUs a worker, local rank 1 takes GPUs 2 and 3. The first one's number is the local rank
# times the GPUs a worker.
#
# ## Summary
#
# - A ring's bytes hardly grow with the number of workers; its messages, and the wait for the slowest, do.
# - Whether many workers pay depends on how long each computes for every byte that it exchanges.
# - Several hosts change the launch command, not the program, if ranks and local ranks are used rightly.
# - Horovod and DDP compute the same; they differ in what they wrap and in what their all-reduce means.
#
# ## Questions
#
# <details><summary>You double the per-worker batch. Which terms of the cost of an update change?</summary>
#
# Computing takes about twice as long, the exchange as long as before: the gradient has as many bytes as the network has
# parameters, whatever the batch. So workers spend a larger share of their time computing. What that does to learning is
# another matter: notebook 05.
#
# </details>
#
# <details><summary>A program chooses its GPU by <code>hvd.rank()</code>. It works on one host. What happens on two hosts
# with four GPUs each?</summary>
#
# Workers 4 to 7 ask for GPUs 4 to 7, which their host does not have. They must ask by local rank.
#
# </details>
#
# <details><summary>Every worker is late now and then. Why does that hurt 1,000 workers more than 10?</summary>
#
# Each update waits for the slowest. If each worker is late once in 1,000 updates, ten workers wait in about one update of
# a hundred; a thousand wait in most of them.
#
# </details>
