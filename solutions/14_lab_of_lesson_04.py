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
# # 14 Lab of lesson 04: what an exchange costs on your machine
#
# **After this notebook you will be able to** find a bug by its symptoms, measure the latency and the bandwidth of an
# exchange, say what fusion and compression save and cost, find out why more workers are not faster, and go on from a
# checkpoint with several workers.
#
# **Time:** {{minutes_14}} minutes, besides the waiting for its runs. **Builds on:** 04.
#
# This is a lab: measurements that belong to lesson 04, and that no later lesson needs. Take those that you want to see.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import torch

from benchmarks.experiment.plots import BLUE, GREY
from benchmarks.instruments.horovod_launch import on_workers
from cifar.model import BootcampResNet, no_norm
from cifar.support.environment import cores
from lessons import axes, live, saved, show
from lessons.cells.sabotage import BUGS, diagnose, patient, sabotage

# %% [markdown]
# ## Sabotage
#
# In lesson 04 you named the bugs of others. Now you make them. `sabotage` takes `cifar_base.py`, which is right, and
# puts one bug into it. Then it launches the program on four workers for some seconds. It shows the rows that you know
# from "Convert it yourself", and one row more. These bugs are there:

# %%
print(*BUGS, sep="\n")

# %% [markdown]
# Choose a bug. Which row will not be met? Write its number into the next cell before you run it.

# %% tags=["task"]
bug, my_guess = "no shards", None  # a name from the list, and the number of a row
rows = sabotage(bug, my_guess)

# %% [markdown]
# Try others. With "sum for mean" no row fails, and still the program is wrong. With "rank 0 asks alone" the program
# hangs. We have told Horovod to end such a run after ten seconds. (By default it only warns, after a minute.) Its
# message names the tensors, and the ranks that have not announced them.

# %%
rows = sabotage("rank 0 asks alone")

# %% [markdown]
# Now the other way round. There are four patients, 1 to 4. Each has one of the bugs of the list. You see only the rows.

# %%
rows = patient(1)

# %% [markdown]
# Which bug is it? Ask with `diagnose(1, "no shards")`, for example. Then take the next patient.

# %% tags=["solution"]
right = diagnose(1, "one order for all epochs")

# %% [markdown]
# ## Tensor fusion, and a measurement of this machine
#
# Sending $n$ bytes takes about $\alpha + \beta n$ seconds. $\alpha$, the latency, has to be paid for each exchange,
# however small: Horovod's next cycle must begin (below), the workers must agree, threads must wake up, packets must
# travel. A network has many small tensors; every layer has a bias. So Horovod does not send a gradient at once. Its
# background thread looks around once in a while (`HOROVOD_CYCLE_TIME`, in milliseconds), collects all gradients that
# are ready on all workers, copies them into one buffer and sends that: **tensor fusion**. `HOROVOD_FUSION_THRESHOLD` is
# the buffer's size in bytes, 128 MiB if you say nothing; 0 turns fusion off. A longer cycle collects more and starts
# later. (`HOROVOD_AUTOTUNE=1` tries values while your program trains.)
#
# First, what are we measuring on?

# %%
gpus_here = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
print(f"{cores()} CPU cores to use, in {nodes} memory region(s); GPUs: {gpus_here or 'none'}")
print("networks:", ", ".join(name for name, state in psutil.net_if_stats().items() if state.isup))

# %% [markdown]
# **Topology** is how these parts are connected. Inside a host GPUs may talk over fast links of their own (`nvidia-smi
# topo -m` draws the map), or by way of the CPU's memory. Between hosts there is a network, often ten or more times
# slower. Good all-reduces know that: they first reduce inside each host, then between hosts, then spread the result.
# Our workers share one host, and Gloo has them talk over `lo`, the loopback network: no cable, but every byte is copied
# and added up by the same cores that also train.
#
# The program measures three things: an all-reduce of several sizes, many small tensors, at once or one by one, and
# one tensor in half precision.

# %%
# %%writefile bandwidth.py
import time
from statistics import median

import horovod.torch as hvd
import torch

from benchmarks.instruments import horovod_ops
from benchmarks.methods.ring_all_reduce import all_reduce_seconds

horovod_ops.POLL_SECONDS = 0.0001  # ask often: 60 waits of up to a millisecond would be measured as well


def seconds(exchange, repeats=10):
    times = []
    for _ in range(repeats + 2):
        horovod_ops.barrier()
        started = time.perf_counter()
        exchange()
        times.append(time.perf_counter() - started)
    return median(times[2:])


def small(together, count=60, numbers=8_000):
    """Many tensors: all announced before the first is waited for, or one after the other."""
    tensors = [torch.ones(numbers) for _ in range(count)]

    def exchange():
        handles = []
        for at, tensor in enumerate(tensors):
            handles.append(hvd.allreduce_async_(tensor, name=f"small.{at}"))
            if not together:
                horovod_ops.wait(handles.pop())
        for handle in handles:
            horovod_ops.wait(handle)

    return seconds(exchange, repeats=5)


def large(compression, numbers=2_000_000):
    """One tensor, compressed before the exchange and decompressed after it."""
    tensor = torch.ones(numbers)

    def exchange():
        packed, kind = compression.compress(tensor)
        compression.decompress(horovod_ops.wait(hvd.allreduce_async(packed, name=f"large.{packed.dtype}")), kind)

    return seconds(exchange)


def all_three(sizes):
    halves = {"fp32": large(hvd.Compression.none), "fp16": large(hvd.Compression.fp16)}
    return {"sizes": all_reduce_seconds(sizes, 10), "together": small(True), "alone": small(False), **halves}


# %%
sizes = [2**power for power in range(8, 25, 2)]
measured = on_workers("bandwidth:all_three", 2, sizes=sizes)[0]

# %%
times, moved = np.array(measured["sizes"]), np.array(sizes)
alpha = float(np.median(times[moved <= 2**14]))
rate = moved[-1] / (times[-1] - alpha)  # with two workers each sends and receives as many bytes as the tensor has
figure, ax = axes("size of the tensor (bytes)", "time of an all-reduce (ms)")
ax.loglog(moved, 1000 * times, label="measured, 2 workers")
ax.loglog(moved, 1000 * (alpha + moved / rate), label="latency + size / bandwidth", marker="")
ax.axvline(alpha * rate, color=GREY, linestyle=":", marker="")
ax.yaxis.set_major_formatter("{x:g}")
ax.yaxis.set_minor_formatter("{x:g}")
ax.legend()
parameters = sum(weight.numel() for weight in BootcampResNet(norm=no_norm).parameters())
show(
    figure,
    "On logarithmic axes the time hardly depends on the size of small tensors, and rises in proportion for large ones.",
    f"Latency about {1000 * alpha:.1f} ms, bandwidth about {rate / 1e6:,.0f} MB/s. Below {alpha * rate / 1e3:,.0f} kB "
    f"(dotted) latency is the larger part. The network's gradients have {4 * parameters / 1e3:,.0f} kB.",
)

# %% [markdown]
# Well to the left of the dotted line a tensor costs about the same whatever its size: a bias of 32 numbers as much as a
# layer of thousands. With bytes there is little to save; with fewer exchanges there is:

# %%
together, alone = measured["together"], measured["alone"]
print(f"60 small tensors, announced at once, so that they can be fused: {1000 * together:6.1f} ms")
print(f"60 small tensors, each when the one before is there:            {1000 * alone:6.1f} ms")
print(f"that is {alone / together:.0f} times the time for the same bytes")

# %% [markdown]
# That difference has three causes. Fused tensors share one transfer. Tensors that are announced at once share the
# agreement about what comes next. And they wait once for Horovod's next cycle, where tensors sent one by one wait each
# time. To see the first cause alone, turn fusion off and announce all at once: `on_workers("bandwidth:small", 2,
# {"HOROVOD_FUSION_THRESHOLD": "0"}, together=True)`. Try it in a cell of your own.
#
# ## Half the bytes, less time?
#
# `DistributedOptimizer(..., compression=hvd.Compression.fp16)` sends gradients as 16-bit numbers. Half the bytes should
# take half the time. Here:

# %%
print(f"8 MB as fp32: {1000 * measured['fp32']:5.1f} ms")
print(f"the same as fp16: {1000 * measured['fp16']:5.1f} ms, {measured['fp16'] / measured['fp32']:.1f} times the time")

# %% [markdown]
# If your machine is like most, fp16 is the *slower* one, and the reason is instructive. An all-reduce does not only
# carry numbers, it adds them. Adding fp32 numbers is what a CPU is built for, many at a time. Gloo adds fp16 numbers by
# turning each into fp32 and back. Packing and unpacking take time as well. All that is paid in computing, to save bytes
# on a loopback network that is not the bottleneck. On GPUs, which add fp16 natively, and with a slow network between
# hosts, the same line is a gain. An optimisation moves load from one part to another: first find out which part is
# loaded. And fp16 has a small range. Gradients below about $3 \cdot 10^{-8}$ become zero, and sums above 65,504 become
# infinite. (Horovod's `gradient_predivide_factor` divides before it adds.) The format bfloat16 has the range of fp32
# and fewer digits. Horovod 0.28 has no compression for it.
#
# ## Waiting without burning a core
#
# A core on which one worker waits is a core on which no other can compute. A worker can waste one in four ways:
#
# - **Waiting in `optimizer.step()`.** Horovod asks again and again whether the exchange is done, without a pause: it
#   *spins*. That reacts fastest where a core is free, and is worst where none is: the spinning worker keeps the core
#   from the threads that would do the exchange. Our `wait_for_gradients` asks as well (`hvd.poll`), and sleeps a
#   millisecond between two questions.
# - **Looking for work.** The background thread of each worker wakes up once a cycle, and all agree on what is ready.
#   Horovod's cycle is 1 ms; with more workers than cores ours is 5 ms. And Horovod's workers agree in every cycle, also
#   while there is nothing to agree on, as in a forward pass. In this course's build such a worker waits for its first
#   tensor instead, up to 100 ms (`HOROVOD_IDLE_CYCLE_TIME`; the few lines are in `source_code/install/`).
# - **Exchanging in parts.** Each exchange wakes threads in all workers. With `groups=1` all gradients travel together,
#   in one flat buffer. That gives up the overlap. Lesson 04 measures what the overlap is worth here.
# - **Threads.** PyTorch would start as many as there are cores, in *each* worker. Ours get their share of the cores.
#
# None of this changes what is computed: with the same grouping the weights are equal to the last bit, and a test of
# this course compares them. The first two and the last are in `cifar/workers.py` and `cifar/support/environment.py`, so
# no script needs to think of them; the grouping is an argument, as in the assignment's reference.
#
# **What to look at:** each bar adds one measure to those of the bar above it. The last one is the same workers without
# any exchange: about as fast as it can get.

# %%
from tqdm import tqdm

from benchmarks.instruments.gloo_processes import on_peers
from benchmarks.instruments.horovod_launch import AS_IT_IS
from benchmarks.speed.loop import images_per_s

OURS = {"HOROVOD_CYCLE_TIME": "5", "HOROVOD_IDLE_CYCLE_TIME": "100"}
launches = (
    (AS_IT_IS, {"Horovod as it is": {"sleep": False, "groups": None}}),
    (
        OURS,
        {
            "longer cycles": {"sleep": False, "groups": None},
            "and sleeping while waiting": {"sleep": True, "groups": None},
            "and one group": {"sleep": True, "groups": 1},
        },
    ),
)
work = {"network": "bootcamp", "batch_size": 64, "updates": 12}
took = {}
for cycles, ways in tqdm(launches, desc="two launches", unit="launch", file=sys.stdout):
    found = on_workers("benchmarks.speed.loop:several", workers, cycles, ways=list(ways.values()), **work)
    took |= dict(zip(ways, zip(*found, strict=True), strict=True))
took["no exchange"] = on_peers("benchmarks.speed.loop:peer", workers, way="alone", **work)
speeds = {label: images_per_s(work["batch_size"], work["updates"], found) for label, found in took.items()}

# %%
figure, ax = axes("images/s of all workers", "how workers wait", size=(8.0, 2.4))
ax.barh(list(speeds), list(speeds.values()), color=[GREY, *[BLUE] * 3, "#d0d0d0"])
ax.invert_yaxis()
first, last = speeds["Horovod as it is"], speeds["and one group"]
told = ", ".join(f"{label}: {speed:,.0f}" for label, speed in speeds.items())
show(
    figure,
    f"Bars of images a second: {told}.",
    f"{workers} workers on {cores()} cores, {work['batch_size']} images each, one run a bar. All measures together: "
    f"{last / first:.1f} times Horovod as it is, {last / speeds['no exchange']:.0%} of the speed without exchange.",
)

# %% [markdown]
# With a core for each worker the bars may be equal: then a worker that spins takes nothing from anybody. One run a bar
# is a glance, not a measurement; `make benchmark` repeats it over several rounds, with larger batches, another network
# and PyTorch's own DistributedDataParallel beside it.
#
# ## "It is slower with more GPUs"
#
# An exchange costs the same whatever the batch was: the gradient of 16 images has as many numbers as that of 1,000. So
# what counts is how long a worker computes between two exchanges. Call the compute time of $b$ images $t_0 + cb$, and
# that of an exchange $t_x$. The part of the time that goes into computing is
#
# $$ \text{efficiency} = \frac{t_0 + cb}{t_0 + cb + t_x}. $$
#
# ![](drawings/strong_and_weak.svg)
#
# There are two ways to use more workers. **Strong scaling** keeps the global batch and divides it: $b$ shrinks with
# each worker, the efficiency with it. **Weak scaling** keeps the per-worker batch: $b$ stays, and so does the
# efficiency once there is an exchange at all, nearly, but the global batch grows (and with it notebook 05's problems).
#
# One more care is needed where workers share cores, as here. Four workers on two cores cannot be four times as fast as
# one, with any library. That is *oversubscription*, not communication. So each case is compared with the same workers
# without exchange.
#
# **What to look at:** on the left, where the lines with and without exchange part. On the right, the share that is
# left: with two workers there is an exchange for the first time, and both lines fall. Which of them ends lower?

# %%
runs = live("C13", device=device, seed=seed)

# %%
result = saved("C13")

# %% [markdown]
# What theory leaves open is the size of $t_x$ beside $t_0 + cb$, and that is a matter of your machine and network: on a
# slow network weak scaling suffers too, and on a very fast one strong scaling hardly does. Two effects disturb the
# simple picture here. Beyond one worker a core the left panel has no more computing power to share out, so its lines
# cannot go on rising. And workers that share cores lend each other their waiting: while one waits for the exchange,
# another computes.
#
# If your own program gets slower with more workers, go through this list from the top:
#
# 1. **Count cores and threads.** Workers times threads should not exceed the cores. On GPUs: are the *data loaders*
#    starved? Four workers want four times the images a second (notebook 02).
# 2. **Check the pinning.** `nvidia-smi` shows whether all sit on GPU 0.
# 3. **Compare images a second, not seconds an update.** With weak scaling an update may take a little longer, and
#    still use $K$ times the images.
# 4. **Take the exchange away once** (a plain optimizer), to see what it costs. If that makes no difference, look
#    elsewhere.
# 5. **Look at the timeline.** Long waiting: one worker is slow. Long all-reduce: the network is. Many tiny exchanges:
#    fusion does not work, perhaps because the cycle is too short.
# 6. **Compute more between two exchanges:** a larger per-worker batch, or `backward_passes_per_step=4`, which *sums*
#    four batches' gradients first: divide each loss by 4, or with SGD the rate is four times as high, in silence. Both
#    enlarge the global batch.
# 7. **More workers than cores?** Waiting must not burn the core that somebody else needs. Horovod's wait does: it
#    spins. The lesson scripts sleep instead, and lengthen Horovod's cycles. The experiment above measures what that
#    brings.
#
# ## A restart: send more than the weights
#
# Only one worker may have read the checkpoint. Let us write a checkpoint, as a run that was interrupted would have left
# it:

# %%
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for _ in range(10):
    optimizer.zero_grad()
    (net(torch.randn(8, 4)) - 1).square().mean().backward()
    optimizer.step()
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7}, "checkpoint.pt")

# %% [markdown]
# Two workers go on from it, but only rank 0 reads the file, as if it lay on a disk that the other cannot see. Then rank
# 0 sends what it has: first the weights alone, then also the optimizer's state, which for Adam means the running means
# of each gradient and its square.

# %%
# %%writefile restart.py
import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
found = torch.load("checkpoint.pt") if hvd.rank() == 0 else {"epoch": 0}
for send_state in (False, True):
    net = torch.nn.Linear(4, 1)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam(net.parameters(), lr=0.05), net.named_parameters())
    if hvd.rank() == 0:
        net.load_state_dict(found["net"])
        optimizer.load_state_dict(found["optimizer"])
    if send_state:
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    epoch = hvd.broadcast_object(found["epoch"], root_rank=0)
    for _ in range(10):  # all workers apply the same mean gradient
        optimizer.zero_grad()
        (net(torch.randn(8, 4)) - 1).square().mean().backward()
        optimizer.step()
    weights = [round(value, 3) for value in net.weight[0].tolist()]
    print(
        f"from epoch {epoch}, state {'sent' if send_state else 'not sent'}: ten updates later the weights are {weights}"
    )


# %%
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


launch("restart.py", 2)

# %% [markdown]
# Same weights at the start, same gradients, and yet the workers part if the state is not sent: each turns the gradient
# into another step. So after a restart send weights, optimizer state, epoch number, and the state of anything else that
# decides what a step is (a scheduler, a loss scale). In `cifar_base.py` a fresh optimizer has no state, so the one
# broadcast is enough.
#
# Two traps in the order of the lines. Load the optimizer's state into the *wrapped* optimizer: `DistributedOptimizer`
# makes a new one, which keeps the rate but not what Adam has gathered so far. And send the state *before* the weights:
# on a worker that has no state yet, Horovod makes an update with zero gradients to create one. With weight decay such
# an update moves the weights. The broadcast of the weights then puts that right.
#
# ## Summary
#
# - A bug shows only to those who watch for it. Some bugs show nowhere but in the gradients.
# - An exchange has a latency and a bandwidth. Fusion saves latency. Compression saves bytes, and costs computing.
# - Scaling is a matter of computing time between two exchanges: small per-worker batches limit it.
# - Where workers share cores, waiting must sleep, cycles must be long, and threads must be counted.
# - After a restart, send the optimizer's state and the epoch, and not only the weights.
