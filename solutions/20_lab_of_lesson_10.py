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
# # 20 Lab of lesson 10: what PyTorch offers beyond the plain exchange
#
# **After this notebook you will be able to** exchange gradients less often or in fewer bytes, train a network whose
# state is divided among the workers, continue a run with another number of workers, read the trace of an update, and
# estimate whether a network fits on a GPU.
#
# **Time:** {{minutes_20}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 03, 04, 09 and 10.
#
# This is a lab. Its experiments belong to lesson 10, and no other lesson needs them. Take those that you want to see.
# The network has three layers, so an update takes milliseconds.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional as F

from benchmarks.instruments.byte_counter import kernel_received
from lessons import axes, show, torchrun


# %%
def network():
    return torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    )  # fmt: skip


def made_up_batch(rank, images):
    draw = torch.Generator().manual_seed(1 + rank)
    return torch.randn(images, 256, generator=draw), torch.randint(10, (images,), generator=draw)


gradient_bytes = sum(parameter.nbytes for parameter in network().parameters())
print(f"a gradient has {gradient_bytes / 1e6:.2f} MB")

# %% [markdown]
# ## Fewer exchanges, and fewer bytes
#
# Sometimes a batch is too large for the memory of a GPU. Then you divide it into parts, and add up the gradients of the
# parts. This is **gradient accumulation**. In PyTorch, each `backward()` adds to `.grad` until somebody calls
# `zero_grad`.
#
# DDP exchanges the gradients in each backward pass. With four parts it exchanges four times, although only the sum is
# needed. `no_sync()` tells DDP to wait. A **communication hook** says how a gradient travels. Ours sends each number in
# 16 bits, so it needs half the bytes.
#
# The next program trains with two workers in four ways: one batch, four parts, four parts with `no_sync`, and one batch
# in 16 bits. It counts the bytes that a worker receives in an update.
#
# **Guess first:** how many MB does each way need? In an exchange of two workers, each receives one gradient.


# %%
def accumulate():
    from contextlib import nullcontext

    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    from torch.nn.parallel import DistributedDataParallel

    pixels, labels = made_up_batch(dist.get_rank(), 64)
    for way in ("one batch", "four parts", "four parts, no_sync", "one batch, 16 bits"):
        torch.manual_seed(0)
        net = DistributedDataParallel(network())
        if way.endswith("16 bits"):
            net.register_comm_hook(None, fp16_compress_hook)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        count = 4 if way.startswith("four") else 1
        before = kernel_received()
        for _ in range(5):
            optimizer.zero_grad()
            for part in torch.arange(64).split(64 // count):
                waits = way.endswith("no_sync") and 63 not in part  # the last part is exchanged
                with net.no_sync() if waits else nullcontext():
                    (F.cross_entropy(net(pixels[part]), labels[part]) / count).backward()
            optimizer.step()
        dist.barrier()
        after = kernel_received()
        received = "not counted" if None in (before, after) else f"{(after - before) / 5 / 1e6:5.2f} MB an update"
        weights = sum(parameter.double().sum().item() for parameter in net.parameters())
        if dist.get_rank() == 0:
            print(f"{way:20} {received}, sum of all weights {weights:.4f}", flush=True)
        del net


torchrun(accumulate, 2, needs=[network, made_up_batch])

# %% [markdown]
# The first three ways end with the same weights, up to rounding. `no_sync` needs a quarter of the bytes of plain
# accumulation. In 16 bits the gradient is rounded, so the weights differ a little.
#
# The gradients of the parts are added up, so the program divides each part's loss by the number of parts. This is right
# if all parts have equally many images. But texts have different numbers of words, and a text's loss is a mean over its
# words. Then the mean of the texts' means is not the mean over all words.
#
# The next cell has four texts. Here the words of long texts have lower losses. **Guess first:** which of the two means
# is lower?

# %%
lengths = [400, 50, 100, 20]  # words
losses = [torch.full((length,), 2 + 20 / length) for length in lengths]
of_means = sum(loss.mean() for loss in losses) / len(losses)
of_words = torch.cat(losses).mean()
print(f"mean of the texts' means {of_means:.3f}, mean over all words {of_words:.3f}")

# %% [markdown]
# This is the mean of means of lesson 03. The library `transformers` had this mistake until October 2024 (its pull
# request 34191). Short texts counted too much, with gradient accumulation and with several workers. The cure is as in
# lesson 03. Divide the sum over all words by the number of all words, on all workers together.
#
# ## A network that no worker holds whole
#
# Lesson 10 describes ZeRO. In its third stage, each worker keeps only a share of the weights, the gradients and the
# optimizer's state. PyTorch calls this **FSDP**, for *fully sharded data parallel*. `fully_shard` divides each layer
# among the workers. Before a layer computes, the workers gather its weights. Afterwards each worker throws away the
# shares of the others.
#
# The next program trains the same network with DDP and with FSDP. It adds up what a worker keeps between two updates.
#
# **Guess first:** the optimizer is Adam, which keeps two numbers for each weight. How many MB does a worker keep with
# DDP, and how many with FSDP?


# %%
import os
import sys


def end_at_once():
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # without Python's own shutdown; the text below says why


def kept(way):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = network()
    if way == "DDP":
        net = DistributedDataParallel(net)
    else:
        mesh = init_device_mesh("cpu", (size,))
        for layer in (net[0], net[2], net[4], net):
            fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.Adam(net.parameters())
    pixels, labels = made_up_batch(rank, 64)
    for update in range(6):
        if update == 1:
            before = kernel_received()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(pixels), labels)
        loss.backward()
        optimizer.step()
    dist.barrier()
    after = kernel_received()

    def megabytes(tensors):
        return sum((part.to_local() if way == "FSDP" else part).nbytes for part in tensors) / 1e6

    states = [value for state in optimizer.state.values() for value in state.values() if value.dim() > 0]
    whole = [parameter.full_tensor() if way == "FSDP" else parameter for parameter in net.parameters()]
    if rank == 0:
        weights, gradients = net.parameters(), [parameter.grad for parameter in net.parameters()]
        parts = {"weights": megabytes(weights), "gradients": megabytes(gradients), "Adam": megabytes(states)}
        print(f"{way:4} of {size} workers:", ", ".join(f"{name} {part:.2f} MB" for name, part in parts.items()))
        received = "not counted" if None in (before, after) else f"{(after - before) / 5 / 1e6:.2f} MB an update"
        print(f"{way:4} received {received}; sum of all weights {sum(w.double().sum().item() for w in whole):.6f}")
    end_at_once()


for way in ("DDP", "FSDP"):
    torchrun(kept, workers, way, needs=[network, made_up_batch, end_at_once])

# %% [markdown]
# Both ways end with the same weights, up to rounding. With FSDP, each worker keeps one share of everything. But it
# receives more bytes.
#
# DDP makes an all-reduce. It has two halves, a reduce-scatter and an all-gather. If $K$ workers exchange $N$ bytes,
# each sends $N(K-1)/K$ bytes in each half. FSDP makes an all-gather before the forward pass, and a second one before
# the backward pass. After that pass it makes a reduce-scatter. These are three halves. Compare the formula with the
# bytes that were counted above:

# %%
half = gradient_bytes * (workers - 1) / workers / 1e6
print(f"by the formula: DDP {2 * half:.2f} MB, FSDP {3 * half:.2f} MB an update for each worker")
print(f"four halves would be {4 * half:.2f} MB")

# %% [markdown]
# DDP agrees with the formula, but FSDP does not. A worker received *four* halves. The reason is Gloo. It has no
# reduce-scatter, so PyTorch makes a whole all-reduce in its place. Each worker then keeps its own share. NCCL, the
# library for GPUs, has one. So count the bytes of your own library before you trust a formula.
#
# With `reshard_after_forward=False`, `fully_shard` keeps the gathered weights until the backward pass. This saves the
# second all-gather. But the weights of all layers need memory until then.
#
# Why does the program end with `end_at_once()`? FSDP puts the workers into a *device mesh*. PyTorch keeps this mesh in
# its caches until Python ends. The mesh refers to the process group. So the group's threads go on, although
# `dist.destroy_process_group()` was called. Then a worker may crash while Python shuts down (lesson 10). This lab
# crashed like that in one of our test runs. `os._exit(0)` ends the process at once, without a shutdown. Before that,
# `end_at_once` empties the buffer of the output.
#
# ## Go on with another number of workers
#
# A run on eight GPUs breaks off, and tomorrow only four are free. Files with only the eight old shares do not help four
# workers. PyTorch's *distributed checkpoint* also notes which part of which tensor a file holds. So the next workers
# read what they need. We save with four workers, and read with two.
#
# **Guess first:** the first layer has 1,024 rows of weights. How many does worker 0 have in each run?


# %%
def checkpoint(step):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0 if step == "save" else 1)  # the second run begins with other weights
    net = network()
    fully_shard(net, mesh=init_device_mesh("cpu", (size,)))
    optimizer = torch.optim.Adam(net.parameters())
    if step == "save":
        pixels, labels = made_up_batch(rank, 64)
        F.cross_entropy(net(pixels), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    model, state = get_state_dict(net, optimizer)
    both = {"model": model, "optimizer": state}
    if step == "save":
        dcp.save(both, checkpoint_id="sharded")
    else:
        dcp.load(both, checkpoint_id="sharded")
        set_state_dict(net, optimizer, model_state_dict=both["model"], optim_state_dict=both["optimizer"])
    weights = sum(parameter.full_tensor().double().sum().item() for parameter in net.parameters())
    share = tuple(next(iter(net.parameters())).to_local().shape)
    if rank == 0:
        print(f"{step} with {size} workers: worker 0 has {share} of the first layer; sum of all weights {weights:.6f}")
    end_at_once()


for step, count in (("save", 4), ("load", 2)):
    torchrun(checkpoint, count, step, needs=[network, made_up_batch, end_at_once])
print("files:", *sorted(path.name for path in Path("sharded").iterdir()))

# %% [markdown]
# The sums agree, so the second run has the weights of the first. The rest of a restart is as in the lab of lesson 04.
# The number of the update and the shuffle must go on, too. With half the workers, the global batch is half as large,
# unless each worker takes twice as many images.
#
# <details><summary>What does torchrun do when a worker dies?</summary>
#
# Start `torchrun` on each host with `--nnodes 1:2 --max-restarts 3`. Then it accepts one or two hosts. When a host is
# lost, `torchrun` ends *all* workers. It starts the program again on the hosts that are left, at most three times.
# Nothing is kept in memory. So the program must first load its last checkpoint from disk.
#
# If you try it, set the variable `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`. Without it, the restarted workers may look for
# dead ones (https://github.com/pytorch/pytorch/issues/135712). In a run of ours without it, every restart failed.
#
# </details>
#
# ## Read the trace of an update
#
# Horovod's timeline shows the exchange alone. `torch.profiler` writes everything that a worker does into a trace. We
# record the fourth update of one of two workers, and draw the parts that matter here.
#
# A **bucket** is DDP's word for gradients that travel together, as in Horovod's tensor fusion. **Guess first:** is a
# bucket exchanged before the backward pass has ended?


# %%
def profiled():
    import json
    from pathlib import Path

    from torch.nn.parallel import DistributedDataParallel
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    net = DistributedDataParallel(network(), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    pixels, labels = made_up_batch(dist.get_rank(), 512)
    for update in range(4):
        recorder = profile(activities=[ProfilerActivity.CPU]) if update == 3 else None
        dist.barrier()  # both workers begin the update together
        if recorder:
            recorder.start()
        optimizer.zero_grad()
        F.cross_entropy(net(pixels), labels).backward()
        optimizer.step()
    recorder.stop()
    if dist.get_rank() == 0:
        recorder.export_chrome_trace("trace.json")  # for ui.perfetto.dev
        events = [(event.name, event.time_range.start, event.time_range.end) for event in recorder.events()]
        Path("events.json").write_text(json.dumps(events))
    del net


torchrun(profiled, 2, needs=[network, made_up_batch])

# %%
ROWS = {
    "forward": "DistributedDataParallel.forward", "backward": "AddmmBackward0", "exchange": "gloo:all_reduce",
    "optimizer": "Optimizer.step",
}  # fmt: skip
events = json.loads(Path("events.json").read_text())
begin = min(start for name, start, end in events)
figure, ax = axes("time since the update began (ms)", "", size=(8, 2.6))
longest = {}
for row, (label, found) in enumerate(ROWS.items()):
    bars = [((start - begin) / 1e3, (end - start) / 1e3) for name, start, end in events if name.startswith(found)]
    ax.broken_barh(bars, (row - 0.3, 0.6), color=f"C{row}")
    longest[label] = sum(length for _, length in bars)
ax.set_yticks(range(len(ROWS)), list(ROWS))
ax.invert_yaxis()
show(
    figure,
    "Four rows with bars over time: forward, backward, exchange and optimizer, one below the other.",
    f"One update of worker 0 of 2. Forward {longest['forward']:.1f} ms, backward {longest['backward']:.1f} ms, optimizer "
    f"{longest['optimizer']:.1f} ms. Bars of the exchange overlap if two buckets travel at once.",
)

# %% [markdown]
# Read the figure from top to bottom. The backward pass has a bar for each of the three layers. The last layer comes
# first. As soon as a bucket is full, DDP begins to exchange it. The backward pass goes on. The optimizer waits for the
# last bucket.
#
# Look for three things in such a trace: gaps without computing, an exchange that begins late, and an exchange that ends
# after the backward pass. The file `trace.json` holds the whole trace. Open it at `ui.perfetto.dev`.
#
# ## Does it fit?
#
# In lesson 10 you computed the memory of a network's state in float32. Now take **mixed precision**. The network
# computes with weights and gradients of 16 bits. Adam keeps its own copy of the weights and its two numbers in 32 bits.
# So a weight needs 2 + 2 + 4 + 4 + 4 = 16 bytes (Rajbhandari and others 2019, section 3.1). Stage 1 of ZeRO divides
# Adam's 12 bytes. Stage 2 divides the gradients, too. Stage 3 also divides the weights.
#
# **Guess first:** can eight GPUs of 80 GB hold 7 billion weights with DDP? Can they with stage 3?

# %%
memory = 80  # GB of a GPU
for name, weights in (("ResNet-50", 25.6e6), ("1.3 billion weights", 1.3e9), ("7 billion weights", 7e9)):
    for gpus in (1, 8, 64):
        stages = {"DDP": 16, "ZeRO 1": 4 + 12 / gpus, "ZeRO 2": 2 + 14 / gpus, "ZeRO 3 (FSDP)": 16 / gpus}
        needs = ", ".join(f"{way} {weights * each / 1e9:.1f} GB" for way, each in stages.items())
        print(f"{name}, {gpus:2} GPU{'s' * (gpus > 1)}: {needs}")
print(f"A GPU has {memory} GB. The activations come on top.")

# %% [markdown]
# ResNet-50 fits anywhere, so FSDP only costs bytes there. With 7 billion weights, the state of DDP is too large for a
# GPU of 80 GB. More GPUs do not help. With ZeRO 3 on eight GPUs it fits, and some room for activations is left.
#
# ## And how fast is it?
#
# The model of lab 19 knows how fast a V100 trains ResNet-50 alone, and how fast the links are. Its constants come
# from publications. The page `docs/where_it_pays.md` lists them with their sources. The next cell asks it about one
# host with 8 GPUs. It also asks about 4 such hosts, with two kinds of links between them.

# %%
from benchmarks.cost_models.clusters import Cluster, Training, efficiency
from benchmarks.cost_models.published import CONSTANTS, WEIGHTS, value

GIGABIT = 1e9 / 8  # bytes
inside = value("nvlink V100"), value("inner latency")
links = {
    "one host": Cluster(1, 8, *inside, 0, 0),
    "4 hosts, Ethernet 25 Gbit/s, TCP": Cluster(4, 8, *inside, 25 * GIGABIT * value("tcp"), value("tcp latency")),
    "4 hosts, InfiniBand 100 Gbit/s": Cluster(4, 8, *inside, value("100g"), value("rdma latency")),
}
for batch in (32, 128):
    training = Training(
        batch / 348.62, WEIGHTS["ResNet-50"], value("bucket")
    )  # a V100: 348.62 images/s (DLPerf, PyTorch)
    for name, cluster in links.items():
        share = efficiency(cluster, training)
        speed = share * cluster.workers * 348.62
        print(f"{batch:3} images a GPU, {name}: {share:.0%} of the ideal speed, {speed:,.0f} images/s")
print("for example:", *CONSTANTS["tcp"])

# %% [markdown]
# We assumed that a V100 trains as many images a second with a batch of 32 as with 128. In truth it is somewhat slower
# with 32.
#
# In 16 bits, 7 billion weights have 14 GB. With ZeRO 3, each GPU receives about three times as much in each update:
# $3 \cdot 14$ GB = 42 GB. A link of 12 GB/s between the hosts needs 3.5 seconds for this. So an update must compute for
# several seconds, or the links must be faster. NVLink between the GPUs of a host carries 126 GB/s, and needs a third of
# a second. So large runs shard inside a host or a group of hosts. Between the groups they only average the gradients.
#
# Should you divide each layer (**tensor parallelism**), or the sequence of layers (a **pipeline**)? Tensor parallelism
# exchanges activations twice in each layer, so its group must stay on the fastest links. A pipeline sends activations
# only between neighbours, so it can use slow links. But its stages are idle at the beginning and at the end of each
# batch. Ask first: does the state fit if it is sharded? If so, FSDP is enough, and it is the simplest way.
#
# ## Why must a process group be destroyed?
#
# The DDP program of lesson 10 has three lines that seem to do nothing. `import torch.distributed.nn` is at its
# beginning. `del wrapped` and `dist.destroy_process_group()` are at its end. Without the import, the program still
# trains and saves. But now and then a worker crashes after all its work. The last line that you see is
# `terminate called without an active exception`. The weights are saved by then, but the launcher reports a failed run.
# So a script that waits for success stops. We launched the program many times, with the import and without it:

# %%
from benchmarks import endings

for name, told in {"with_ddp": "with the import", endings.LATE: "without it"}.items():
    counts = endings.read(name)
    print(f"{told}: {counts['failures']} of {counts['launches']} launches failed")

# %% [markdown]
# One crash is too few to give a rate. But the cause can be seen without a crash. If one of these lines is missing,
# threads of the process group are still alive when the program has ended its work.
#
# <details><summary>Why do these threads make it crash?</summary>
#
# The threads of the process group exchange the gradients. A thread may still be at work while Python shuts down. Then
# C++ ends the whole process. `dist.destroy_process_group()` ends the threads, but only if nothing holds the group any
# more. Two things may hold it:
#
# - **The DDP wrapper.** So delete the wrapper first. If your training is a function, its variables go when it returns.
#   Call `dist.destroy_process_group()` after that.
# - **The module `torch.distributed.nn`** holds it if it is imported while there is a group.
#   `DistributedDataParallel(net)` imports it. So import it yourself, before `init_process_group` makes the group.
#
# There is one more way to end badly. A worker that has ended has closed its connections. If another worker is still
# connecting to it at that moment, this looks like a crash, or the other one waits until its time is over. So
# `torchrun(...)` adds `dist.barrier()` after your function, which waits for all workers. A training program needs no
# such line. Its exchanges of gradients have connected all workers before.
#
# We tried this with Gloo on CPUs only.
#
# </details>
#
# ## How many workers are worth having on a machine like this one?
#
# One of our sources says that synchronous training is impractical with more than some tens of GPUs. Lesson 09 has a
# formula for the time of an exchange. It has a latency $\alpha$, a time of a byte $\beta$, and a time of agreeing
# $\gamma$. The next cell measures these three on your machine. Two and four real workers exchange gradients of several
# sizes. Then we look for the values with which the formula fits best. One worker also trains our small network for many
# updates, with batches of 64 images. This shows how often an update is slow, and by how much.

# %%
from lessons import live, saved

runs = live("C14", device=device, seed=seed)

# %% [markdown]
# We do not have thousands of workers, so we simulate them. In each simulated update, each worker computes as long as
# one measured update took. All wait for the slowest. The formula gives the time of the exchange.
#
# ResNet-50 needs 340 times the computing of our network. Its gradient has 53 times the bytes. So we multiply the
# computing and the bytes by these numbers. For a processor that is 100 times as fast, we divide the time of computing
# by 100.
#
# The next figure shows the saved experiment, which had more updates. The horizontal axis is the number of workers. The
# vertical axis is the share of its time in which a worker computes. At 1.0 it never waits. The black line is one half.
# **Where a coloured line is below it, workers wait more than they compute.** Each coloured line is a case. Its name
# says the network, and how much faster the machines are than here.

# %%
result = saved("C14", own=False)

# %% [markdown]
# **So it depends.** ResNet-50 on a processor like this one can use thousands of workers. Our small network can use only
# about 16 there. Compare two cases at a time:
#
# - **A faster processor, the same links:** fewer workers are worth having. A gradient is ready sooner, but its exchange
#   takes as long as before.
# - **A network that computes more for each of its parameters:** more workers are worth having.
# - **Faster messages:** far more workers are worth having. See the last two cases.
#
# A ring is not the only way. In a **tree**, pairs of workers add their gradients. Then pairs of pairs do so, and so on.
# The sum comes back the same way. With 1,024 workers, this takes 20 messages one after the other. A ring takes 2,046.
# In general a tree takes about $2 \log_2 K$ messages. But each carries the whole gradient. So a tree is better for
# small gradients and many workers. A ring is better for large gradients.
#
# In a cluster, a message takes some microseconds. Our $\alpha$ is much larger, because four workers share few cores.
#
# Your own run was short, with few updates. We measured only two and four workers. So the fit cannot tell the time of
# agreeing ($\gamma$) well from the time of a message ($\alpha$). Even if your $\gamma$ is 0, agreeing is not free.
#
# What does a larger batch per worker bring? We assume that nobody is slow, and that an image takes as long in any
# batch. Change the batches. Or imagine a faster link: add the line `beta = beta / 10` below the line with `fit`.

# %%
import numpy as np

from benchmarks.cost_models.ring_all_reduce import fit, ring

once, alpha, beta = fit(runs["machine"][0])  # gamma is called `once` here
print(f"gamma {1e3 * once:.1f} ms, alpha {1e3 * alpha:.1f} ms, beta {1e9 * beta:.2f} ns")
image = np.median(runs["machine"][0]["updates"]) / 64  # seconds for an image
for batch in (16, 64, 256, 1024):
    computing = batch * image
    exchanges = [ring((once, alpha, beta), k, 4 * 480_000) for k in (2, 16, 256, 4096)]  # 480,000 parameters
    shares = ", ".join(f"{computing / (computing + exchange):.0%}" for exchange in exchanges)
    print(f"{batch:5} images a worker: 2, 16, 256 and 4,096 workers compute {shares} of their time")

# %% [markdown]
# ## Summary
#
# - With `no_sync`, DDP exchanges once for several parts of a batch. A communication hook changes how a gradient
#   travels.
# - FSDP computes the same as DDP. Each worker keeps a share of the state, and receives 1.5 times the bytes. With Gloo
#   it receives twice the bytes, because Gloo has no reduce-scatter.
# - Another number of workers can read a distributed checkpoint.
# - A trace shows whether the exchange hides behind the backward pass.
# - With Adam in mixed precision a weight needs 16 bytes. The activations come on top.
#
# ## Questions
#
# <details><summary>You train with two parts for each update and forget <code>no_sync</code>. What is wrong with the
# weights?</summary>
#
# Nothing is wrong. DDP exchanges twice, but the sum of two means is the mean of two sums. Only time is lost.
#
# </details>
#
# <details><summary>With FSDP on 64 workers, does a worker receive more bytes than on 8?</summary>
#
# It hardly receives more. With 8 workers it receives 2.6 times $N$, and with 64 it receives 2.95 times $N$. The formula
# is $3N(K-1)/K$.
#
# </details>
