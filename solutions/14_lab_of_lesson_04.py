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
# **After this notebook you will be able to** find a bug by its symptoms, read Horovod's timeline, measure the latency
# and the bandwidth of an exchange, and say what fusion and compression save and cost. You can also find out why more
# workers are not faster, and go on from a checkpoint with several workers.
#
# **Time:** {{minutes_14}} minutes, besides the waiting for its runs. **Builds on:** 04.
#
# This is a lab. Its measurements belong to lesson 04, and no later lesson needs them. Take those that you want to see.

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
from lessons import axes, horovodrun, live, saved, show
from lessons.cells.plots.update import one_update, show_update
from lessons.cells.tasks.sabotage import BUGS, diagnose, patient, sabotage

# %% [markdown]
# ## Sabotage
#
# In lesson 04 you named the bugs of others. Now you make bugs. `sabotage` puts one bug into `cifar_base.py`, and
# launches it on four workers for some seconds. It shows the rows of "Convert it yourself", and one row more. These are
# the bugs:

# %%
print(*BUGS, sep="\n")

# %% [markdown]
# Choose a bug. Which row will not be met? Write its number into the next cell before you run it.

# %% tags=["task"]
bug, my_guess = "no shards", None  # a name from the list, and the number of a row
rows = sabotage(bug, my_guess)

# %% [markdown]
# Try other bugs. With "sum for mean" no row fails, but the program is still wrong. With "rank 0 asks alone" the program
# hangs. By default Horovod only warns, after a minute. We told it to end such a run after twenty seconds. Its message
# names the tensors, and the ranks that have not announced them.

# %%
rows = sabotage("rank 0 asks alone")

# %% [markdown]
# Now you search. There are four patients, 1 to 4. Each has one bug of the list. You see only the rows.

# %%
rows = patient(1)

# %% [markdown]
# Which bug is it? Ask with `diagnose(1, "no shards")`, for example. Then take the next patient.

# %% tags=["solution"]
right = diagnose(1, "one order for all epochs")

# %% [markdown]
# ## Look into a real update
#
# Lesson 04 said how an exchange can hide behind the backward pass. Now we look at it in
# `cifar_base.py` itself. An environment variable asks Horovod for a **timeline**: a record of what it did with each
# tensor.

# %%
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
# ## Does overlap pay here?
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
# your update. With a longer cycle (`HOROVOD_CYCLE_TIME`) Horovod waits a little longer, and fuses more of them. The
# next section measures what fusion saves.
#
# ## Tensor fusion, and a measurement of this machine
#
# An exchange of $n$ bytes takes about $\alpha + \beta n$ seconds. Even the smallest exchange costs the latency
# $\alpha$: the workers must agree, threads must wake up, and packets must travel.
#
# A network has many small tensors: every layer has a bias. So Horovod does not send a gradient immediately. Its
# background thread looks for gradients once a *cycle* (`HOROVOD_CYCLE_TIME`, in milliseconds). It copies those that all
# workers have ready into one buffer, and sends the buffer. This is **tensor fusion**. A longer cycle collects more, but
# the exchange starts later. The wait for the next cycle is a part of the latency. `HOROVOD_FUSION_THRESHOLD` is the
# buffer's size in bytes. By default it is 128 MiB, and 0 turns fusion off. (`HOROVOD_AUTOTUNE=1` tries values while
# your program trains.)
#
# First, what are we measuring on?

# %%
gpus_here = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
nodes = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
print(f"{cores()} CPU cores to use, in {nodes} memory region(s); GPUs: {gpus_here or 'none'}")
print("networks:", ", ".join(name for name, state in psutil.net_if_stats().items() if state.isup))

# %% [markdown]
# **Topology** is how these parts are connected. Inside a host, GPUs exchange over fast links of their own, or through
# the CPU's memory. (`nvidia-smi topo -m` draws the map.) The network between hosts is often ten or more times slower.
# So a good all-reduce first adds up inside each host, and then between hosts. Then it spreads the result. Our workers
# share one host. Gloo connects them by `lo`, the loopback network. It has no cable: the cores that train also copy and
# add up every byte.
#
# The program measures tensors of several sizes, many small tensors (at once or one by one), and one tensor in half
# precision. **Guess:** do four times the bytes take four times as long?

# %%
# %%writefile bandwidth.py
import time
from statistics import median

import horovod.torch as hvd
import torch

from benchmarks.cost_models.ring_all_reduce import all_reduce_seconds
from benchmarks.instruments import horovod_ops

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
# Far to the left of the dotted line, all tensors take about the same time. A bias of 32 numbers takes as long as a
# layer of thousands. Fewer bytes save little here, but fewer exchanges help. **Guess:** how much longer do 60 small
# tensors take one by one?

# %%
together, alone = measured["together"], measured["alone"]
print(f"60 small tensors, announced at once, so that they can be fused: {1000 * together:6.1f} ms")
print(f"60 small tensors, each when the one before is there:            {1000 * alone:6.1f} ms")
print(f"that is {alone / together:.0f} times the time for the same bytes")

# %% [markdown]
# The difference has three causes:
#
# - Fused tensors share one transfer.
# - Tensors that are announced at once share the agreement about what comes next.
# - They wait only once for Horovod's next cycle. Tensors that are sent one by one wait each time.
#
# To see the first cause alone, turn fusion off and announce all at once. Try it in a cell of your own:
# `on_workers("bandwidth:small", 2, {"HOROVOD_FUSION_THRESHOLD": "0"}, together=True)`.
#
# ## Half the bytes, less time?
#
# `DistributedOptimizer(..., compression=hvd.Compression.fp16)` sends gradients as 16-bit numbers (fp16), not as 32-bit
# numbers (fp32). **Guess:** do half the bytes take half the time?

# %%
print(f"8 MB as fp32: {1000 * measured['fp32']:5.1f} ms")
print(f"the same as fp16: {1000 * measured['fp16']:5.1f} ms, {measured['fp16'] / measured['fp32']:.1f} times the time")

# %% [markdown]
# On most machines fp16 is the *slower* one. Why? An all-reduce also adds the numbers. A CPU adds many fp32 numbers at a
# time. To add fp16 numbers, Gloo turns each into fp32 and back. Packing and unpacking take time as well. So the cores
# compute more, to save bytes on a loopback network that is not the bottleneck.
#
# GPUs add fp16 numbers directly. With GPUs and a slow network between hosts, the same line is a gain. An optimisation
# moves load from one part to another. So first find out which part is loaded.
#
# Also, fp16 has a small range. Gradients below about $3 \cdot 10^{-8}$ become zero, and sums above 65,504 become
# infinite. (Horovod's `gradient_predivide_factor` divides before it adds.) The format bfloat16 has the range of fp32,
# but fewer digits. Horovod 0.28 has no compression for it.
#
# ## Waiting without burning a core
#
# While a waiting worker uses a core, no other can compute there. A worker can waste a core in four ways:
#
# - **Waiting in `optimizer.step()`.** Horovod asks again and again whether the exchange is done, without a pause: it
#   *spins*. With a free core this reacts fastest. Without one it is worst: the spinning worker keeps the core from the
#   threads that would do the exchange. Our `wait_for_gradients` asks as well (`hvd.poll`), but sleeps a millisecond
#   between two questions.
# - **Looking for work.** In each cycle the background threads wake up, and agree on what is ready. Horovod's cycle is 1
#   ms. With more workers than cores, ours is 5 ms. Horovod's workers agree even when nothing is ready, as in a forward
#   pass. In this course's build such a worker waits for its first tensor instead, up to 100 ms
#   (`HOROVOD_IDLE_CYCLE_TIME`). The change is in `source_code/install/`.
# - **Exchanging in parts.** Each exchange wakes threads in all workers. With `groups=1` all gradients travel together,
#   in one flat buffer. This gives up the overlap, which saved nothing here (see above).
# - **Threads.** By default PyTorch starts a thread for each core, in *each* worker. Our workers get their share of the
#   cores.
#
# Our measures against this waste do not change what is computed. With the same grouping the weights are equal to the
# last bit, and a test of this course compares them. The first two measures and the last are in `cifar/workers.py` and
# `cifar/support/environment.py`, so no script needs to think of them. The grouping is an argument, as in the
# assignment's reference.
#
# **What to look at:** each bar adds one measure to those of the bar above it. The last bar has no exchange. It is about
# as fast as the workers can get. Guess first: which measure helps most?

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
work = {"network": "bootcamp", "batch_size": 64, "updates": 8}
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
# With a core for each worker, the bars may be equal. There a spinning worker takes nothing from the others. One run for
# each bar is only a first look. `make benchmark` repeats it over several rounds, with larger batches, another network
# and PyTorch's own DistributedDataParallel.
#
# ## "It is slower with more GPUs"
#
# The gradient of 16 images has as many numbers as that of 1,000. So an exchange costs the same for any batch. What
# counts is how long a worker computes between two exchanges. Computing $b$ images takes $t_0 + cb$, and an exchange
# takes $t_x$. The efficiency is the part of the time that goes into computing:
#
# $$ \text{efficiency} = \frac{t_0 + cb}{t_0 + cb + t_x}. $$
#
# ![](drawings/strong_and_weak.svg)
#
# There are two ways to use more workers. **Strong scaling** divides the same global batch among more workers. So $b$
# shrinks, and the efficiency falls. **Weak scaling** keeps the per-worker batch $b$. From two workers on there is an
# exchange, and the efficiency nearly stays. But the global batch grows, and with it the problems of notebook 05.
#
# Here workers share cores. Four workers on two cores cannot be four times as fast as one, with any library. The cause
# is *oversubscription* (more workers than cores), not communication. So we compare each case with the same workers
# without exchange.
#
# **What to look at:** on the left, where do the lines with and without exchange part? The right panel shows the share
# that is left with the exchange. With two workers there is an exchange for the first time, and both lines fall. Which
# of them ends lower?

# %%
runs = live("C13", device=device, seed=seed)

# %%
result = saved("C13")

# %% [markdown]
# How large $t_x$ is beside $t_0 + cb$ depends on your machine and network. On a slow network weak scaling suffers, too.
# On a very fast one strong scaling hardly suffers.
#
# Two effects are not in the formula. With more workers than cores, there is no more computing power to share out. So
# the lines on the left cannot go on rising. And workers that share cores use each other's waiting: while one waits for
# the exchange, another computes.
#
# Does your own program get slower with more workers? Go through this list from the top:
#
# 1. **Count cores and threads.** Workers times threads should not exceed the cores. With GPUs, check that the *data
#    loaders* keep up. Four workers want four times the images a second (notebook 02).
# 2. **Check the pinning.** `nvidia-smi` shows whether all workers sit on GPU 0.
# 3. **Compare images a second, not seconds an update.** With weak scaling an update may take a little longer, but it
#    uses $K$ times the images.
# 4. **Take the exchange away once** (use a plain optimizer), to see what it costs. If the program is no faster, look
#    elsewhere.
# 5. **Look at the timeline.** Long waiting means that one worker is slow. A long all-reduce means that the network is
#    slow. Many tiny exchanges mean that fusion does not work, perhaps because the cycle is too short.
# 6. **Compute more between two exchanges:** take a larger per-worker batch, or set `backward_passes_per_step=4`. It
#    *sums* the gradients of four batches first. So divide each loss by 4. Otherwise SGD has four times the rate, in
#    silence. Both ways enlarge the global batch.
# 7. **More workers than cores?** Horovod spins while it waits, and others need the core. The lesson scripts sleep
#    instead, and lengthen the cycles. The experiment above measures what that brings.
#
# ## A restart: send more than the weights
#
# Often only one worker reads the checkpoint. What must it send to the others? First we write a checkpoint, as an
# interrupted run leaves it:

# %%
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for _ in range(10):
    optimizer.zero_grad()
    (net(torch.randn(8, 4)) - 1).square().mean().backward()
    optimizer.step()
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7}, "checkpoint.pt")

# %% [markdown]
# Two workers go on from it, but only rank 0 reads the file. First rank 0 sends the weights alone, then also the
# optimizer's state. Adam's state has the running means of each gradient and its square. **Guess:** when do both workers
# end with equal weights?

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
# The workers start with the same weights and apply the same gradients. But without the state their weights part: each
# turns the gradient into another step. So after a restart send the weights, the optimizer's state, the epoch number,
# and the state of anything else that decides the step (a scheduler, a loss scale). In `cifar_base.py` a fresh optimizer
# has no state, so the one broadcast is enough.
#
# The order of the lines has two traps:
#
# - Load the optimizer's state into the *wrapped* optimizer. `DistributedOptimizer` makes a new one. It keeps the rate,
#   but not what Adam has gathered so far.
# - Send the state *before* the weights. On a worker without a state, Horovod makes an update with zero gradients to
#   create one. With weight decay such an update moves the weights. The broadcast of the weights then puts that right.
#
# ## Summary
#
# - You see a bug only if you watch for it. Some bugs show only in the gradients.
# - A timeline shows whether workers exchange, wait or compute. Overlap helps only where the exchange does not need the
#   cores that compute.
# - An exchange has a latency and a bandwidth. Fusion saves latency. Compression saves bytes, but it costs computing.
# - Scaling depends on the computing time between two exchanges. Small per-worker batches limit it.
# - Where workers share cores, they must sleep while they wait. Make cycles long, and count threads.
# - After a restart, send the optimizer's state and the epoch, and not only the weights.
#
# ## Questions
#
# <details><summary>In your timeline each gradient waits long in NEGOTIATE_ALLREDUCE, and is then exchanged in
# no time. You are offered a faster network. Do you buy it?</summary>
#
# No. The exchange is short already. The workers wait for one of them to announce its gradient: it is slower, gets its
# images later, or shares its core or GPU with somebody. Find out which, and why.
#
# </details>
