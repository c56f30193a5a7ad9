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
# **Time:** 40 minutes on 2 CPU cores, four of them waiting. **Builds on:** the ring all-reduce of notebook 03,
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
# A **host** is a computer that takes part in a run. Nothing in a program changes when there are several. The launcher is
# told which hosts to use, and how many workers to start on each:
#
#     horovodrun -np 4 -H alpha:2,beta:2 python train.py
#
# The launcher logs in to each host by `ssh`. It cannot type a password, so you need a key. The program, the environment
# and the data must be at the same path on each host.
#
# You probably have one computer. Linux can make several hosts of it. It can give a group of processes its own network
# card, its own host name and its own list of processes. To these processes, the group looks like a computer of its own.
# Containers are made in the same way. The next cell makes two such hosts, called alpha and beta. Their link carries 1
# Gbit/s, as a cable between two computers often does. Then the cell starts two workers on each host.

# %%
from lessons import on_two_hosts

two = on_two_hosts()

# %% [markdown]
# The first worker of each host says how many workers its host has. These two workers have rank 0 and rank 2. The rank
# counts all workers, from 0 to 3. The **local rank** counts the workers of one host, so it is 0 or 1 on each host here.
# On real hosts, each with its own disk and its own GPUs, a program uses them like this:
#
# - One worker of all writes the results: `hvd.rank() == 0`.
# - Each worker takes a GPU of its own host: the GPU with the number `hvd.local_rank()`.
# - One worker of each host fetches the data, while the others wait: `hvd.local_rank() == 0`.
#
# To try more, open a terminal in the course's folder and type
#
#     python -m cluster up --hosts 2 --rate 1gbit
#
# You get a shell on alpha. There you can type `horovodrun` commands. When you leave the shell by `exit`, both hosts are
# gone.
#
# ## A worker dies
#
# The language model Llama 3 was trained on 16,384 GPUs. In 54 days there were 419 unexpected interruptions (Grattafiori
# and others 2024, arXiv:2407.21783). That is one in about three hours.
#
# Each update needs all workers. So when one worker dies, the others cannot go on, and the launcher ends them. What is
# lost then? Everything since the last checkpoint on disk, or the whole run if there is none.
#
# **Elastic** training goes on without the dead worker. Every few updates, each worker keeps a copy of the training's
# state in memory. This is called a **commit**. When a worker dies, the others go back to the last commit. They get new
# ranks and a new size, and continue. Here are the important lines of `source_code/cifar_elastic.py`:
#
#     sampler = hvd.elastic.ElasticSampler(train)
#     state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, epoch=0)
#     state.register_reset_callbacks([sampler.reset])
#
#     @hvd.elastic.run
#     def train_all_epochs(state):      # is called again after each change of the workers
#         while state.epoch < epochs:
#             finish_epoch()            # makes the updates that are left in this epoch, and commits after every 10
#             state.epoch += 1
#             sampler.set_epoch(state.epoch)
#             state.commit()
#
#     train_all_epochs(state)
#
# The sampler remembers which images of the epoch are done. After a change, it divides the other images among the workers
# that are there then. The third line asks for this after each change. Without it, Horovod does not tell the sampler when
# workers have left and no new ones have come. Each worker then still takes its old share, and images are left out.
#
# The program is started in a new way:
#
#     horovodrun -np 4 --min-np 2 --max-np 4 --host-discovery-script source_code/answering_hosts.sh \
#         --blacklist-cooldown-range 3 6 python source_code/cifar_elastic.py
#
# - The run begins with 4 workers. It goes on as long as there are at least 2. It never has more than 4.
# - The script prints the hosts that answer, such as `alpha:2` and `beta:2`. Horovod calls it once per second.
# - If one worker of a host fails, Horovod also ends the other workers of this host. It does not use the host for some
#   time: here, for 3 to 6 seconds. Without this option, it never uses the host again.
#
# The next cell starts such a run with two workers on alpha and two on beta. In the middle of the second epoch it kills a
# worker on beta by `kill -9`. This takes one to two minutes. **Before you run it, think:** Horovod ends the other worker
# of beta as well, so four workers become two. What should happen to the learning rate?

# %%
elastic = on_two_hosts("a worker is killed", seed=seed)

# %% [markdown]
# The left panel shows how many images have been used since the run began. The curve stops when the worker is killed. A
# grey band marks the pause. After it, the curve begins a little lower, because the updates since the last commit are
# made again. It rises more slowly while there are two workers. At the second grey band, new workers have started on
# beta, and they get the state from the others. This time no update is lost: the others let new workers in only at a
# commit.
#
# The right panel shows the learning rate. Horovod does not change it. Our program computes it before each update:
#
#     rate = args.lr * warmup_factor(done, 3 * len(train), hvd.size())
#
# This is the warmup of notebook 06. It climbs from the base rate to `hvd.size()` times the base rate, over three epochs.
# With two workers the global batch is half as large, so it climbs to twice the base rate only. The rate falls when beta
# is lost, and rises again when it is back.
#
# What does a failure cost? We made such runs before, with three seeds each, and saved the results. Besides the *killed
# worker* there are three other kinds of trouble. A *killed host* loses all its processes at once, as by a power failure.
# It starts again after the second epoch. A *cut cable* is put back after the second epoch. A *host leaves* when the
# script stops printing it, for example because the owner of the host needs it. After the second epoch, the script prints
# it again.

# %%
from statistics import mean

from benchmarks import hosts

for name in (hosts.CALM, *hosts.TROUBLES):
    runs_of_it = hosts.read(name)
    pauses = [run["pauses"] for run in runs_of_it]
    again = [sum(stretch["repeated"] for stretch in run["stretches"]) for run in runs_of_it]
    accuracy = [run["epochs"][-1]["test_accuracy"] for run in runs_of_it]
    print(f"{name}, {len(runs_of_it)} runs: {mean(accuracy):.1%} of the test images are right at the end")
    if name != hosts.CALM:
        first, second = ([pause[number] for pause in pauses] for number in (0, 1))
        print(
            f"    pause after the failure: {min(first):.1f} to {max(first):.1f} s; when beta is back: {max(second):.1f} s"
        )
        print(f"    updates made again: {min(again)} to {max(again)}")
    lost, twice = (sum(run[count] for run in runs_of_it) for count in ("lost", "twice"))
    print(f"    images of an epoch that were left out: {lost}; that were used twice: {twice}")

# %% [markdown]
# - **The updates** that are made again are at most those between two commits: ten here. You choose this number. A commit
#   copies the weights, so it takes time as well.
# - **The pause** is mostly waiting. In a ring, each worker exchanges with its two neighbours only. A neighbour of a
#   killed worker notices at once that the connection is closed. The other workers still wait for their neighbours. They
#   give up after 30 seconds. This time is an option of Gloo, the library that exchanges the gradients:
#   `--gloo-timeout-seconds`. Do not make it too short. New workers must also have started within this time. When we
#   tried 10 seconds on a busy computer, some runs ended as beta came back, because its workers needed longer.
# - **A host that leaves costs almost nothing.** Horovod tells the workers about it at their next commit. So no worker
#   waits for an answer that does not come, and no update is made again. Many clouds warn you some time before they take
#   a machine away. If the script learns about it in time, you lose nothing.
# - **No image is left out.** Each worker of `cifar_elastic.py` writes down the images of each update. We counted them
#   after the runs. Updates that were made again count once.
# - **Alpha must not die.** `horovodrun` runs there, and the run ends with it.
#
# PyTorch's own launcher, `torchrun`, goes another way. Started on each host with `--nnodes 1:2 --max-restarts 3`, it
# accepts one or two hosts. When a host is lost, it ends *all* workers, and starts the program again on the hosts that
# are left. It does so at most three times. Nothing is kept in memory, so the program must load its last checkpoint from
# disk when it begins.
#
# Set the variable `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1` for this. Workers find each other through a list of addresses.
# By default the list outlives a restart, and new workers may find the addresses of dead ones there. In a run of ours,
# every restart failed for this reason (https://github.com/pytorch/pytorch/issues/135712).
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
# - An elastic run goes on without a dead worker. It repeats the updates since the last commit, and loses no image.
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
