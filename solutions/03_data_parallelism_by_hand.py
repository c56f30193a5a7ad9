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
# # 03 Data parallelism by hand
#
# **After this notebook you will be able to** average gradients correctly, also over unequal shards; run a parameter
# server, and a ring all-reduce by your own plan, on real processes; and count the bytes that each worker sends.
#
# **Time:** about {{minutes_03}} minutes, and about two more of waiting on 2 CPU cores. **Builds on:** 01 (the noise of
# a gradient) and 02 (the training loop of one worker).
#
# Horovod does all of this for you from notebook 04 on. If you have done it once by hand, you know what its few lines
# decide.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.experiment.plots import axes, panels
from benchmarks.instruments.byte_counter import kernel_received
from cifar.data import load, normalise, shard, shuffle
from cifar.model import BootcampResNet
from cifar.support.environment import cores
from lessons import compare, live, saved, show

# %% [markdown]
# ## Why several processors?
#
# One processor works through its images one after the other. Two processors can each take half of them, at the same
# time. Is the training then twice as fast?
#
# In the next experiment each worker has one core of this machine for itself. Think of the core as its GPU. First one
# worker trains alone on one core. Then two workers train on two cores, and exchange their gradients after each update.
#
# **Guess first.** How many images will two workers manage while one manages 100? Write a number into the next cell.

# %%
my_guess = None  # a number of images, such as 100

# %%
if cores() > 1:
    runs = live("cores", seed=seed)
else:
    print("This machine has one core. See below what another machine with two cores measured.")

# %%
result = saved("cores")
compare("two_workers", my_guess)

# %% [markdown]
# Two workers manage {{cores_weak}} images while one manages 100, if each keeps a batch of 64 images. This is called
# **weak scaling**. They gain less if they share one batch of 64, so that each has only 32. This is called **strong
# scaling**: the exchange takes as long as before, and there is less to compute between two exchanges. The dashed line
# is what a simple model says for four and eight workers, each with a core of its own.
#
# In most other experiments of this course, one worker may use all cores, because that is how you would train on this
# machine. Then two workers share the same cores, and cannot be faster. Remember this when you read a time.
#
# ## The loop in five lines
#
# ![](drawings/one_update.svg)
#
# All workers start with equal weights. Then each of them repeats this:
#
# 1. Take the next batch of your own images.
# 2. Compute the mean loss of these images, and its gradient.
# 3. Give your gradient to the others, and get the mean of all gradients.
# 4. Change your weights with this mean.
#
# All start equal, and all apply the same change. So they stay equal, and nobody ever has to send weights. This is
# called **data parallelism**. Step 3 is the only one that makes the training distributed, and most of this notebook is
# about it.
#
# ## What should come out?
#
# Each of $K$ workers computes a gradient on its own images, and all apply the same mean. The loss of a batch is a mean
# over its images, so its gradient is one too. Say worker $r$ has $n_r$ images and their mean gradient $g_r$. All images
# together have
#
# $$g = \frac{\sum_r n_r\, g_r}{\sum_r n_r}.$$
#
# If all $n_r$ are equal, this is the plain mean of the $g_r$. That is the whole theorem: **$K$ workers with $n$ images
# each compute what one worker computes with $Kn$**. No approximation: they differ by rounding alone. But read its two
# conditions. The counts are equal, or are used as weights. And each image's gradient depends on that image alone.
#
# The first condition first. Write the mean that is right for any counts.


# %% exercise="average_gradients"
def average_gradients(gradients, counts):
    ### BEGIN SOLUTION
    total = sum(counts)
    if total == 0:
        raise ValueError("no worker has an image")
    columns = zip(*gradients, strict=True)
    return [sum(n * value for n, value in zip(counts, column, strict=True)) / total for column in columns]
    ### END SOLUTION


# %% [markdown]
# Now with real images. Three shards of very different sizes; the gradient of all their images in one piece; and two
# ways to join the three.


# %%
def gradient(net, pixels, labels):
    """Mean loss of a batch, and its gradient as one vector."""
    loss = F.cross_entropy(net(normalise(pixels)), labels)
    return loss.detach(), torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(net.parameters()))])


# %%
torch.manual_seed(seed)
train, _ = load(limit=images)
net, counts = BootcampResNet(), [96, 24, 8]
parts = torch.arange(sum(counts)).split(counts)
mine = torch.stack([gradient(net, *train.batch(part))[1] for part in parts])
_, together = gradient(net, *train.batch(torch.cat(parts)))
weighted = torch.tensor(average_gradients(mine[:, :1000].tolist(), counts))  # a list of 1,000 numbers is enough
for name, found in (("mean of means", mine.mean(0)[:1000]), ("weighted", weighted)):
    away = (found - together[:1000]).norm() / together[:1000].norm()
    print(f"{name}: {away:.1e} away, relative to the gradient's length")

# %% [markdown]
# ### On real workers: is it exact?
#
# The next run has real Horovod workers average their gradients, in double precision, so that rounding cannot hide a
# mistake. One process computes the gradient of all their images. There are three networks: without normalisation; with
# batch normalisation, as everybody writes it; and with batch statistics that are averaged over the workers too. Look
# for the line that does not lie near the bottom, at about $10^{-15}$.

# %%
runs = live("C01", device=device, seed=seed)

# %%
result = saved("C01")

# %% [markdown]
# Here the second condition breaks. Batch normalisation makes images of one
# batch see each other: mean and variance come from the images at hand. A worker has only its own at hand. So "multi-GPU
# training equals a larger batch" is true of the gradient averaging and false of the usual network. Notebook 06 asks
# whether it matters for the accuracy.
#
# ### Shards that do not divide evenly
#
# 50,000 images over 3 workers leave two over, and the last batch of an epoch is often short. What if one worker has
# fewer images, and we take the plain mean all the same? Left: the error of one batch. Right: what remains of it after
# averaging over several batches. Noise fades. A bias stays.

# %%
runs = live("C02", device=device, seed=seed)

# %%
result = saved("C02")

# %% [markdown]
# The plain mean gives the few images of the small shard too much weight. With shuffled data that is extra noise. With
# data in the order of classes it pulls every update the same way. Three cures: weigh by counts, as you did; give every
# worker equally many and leave the rest for another epoch (what `cifar.data.shard` does); or pad.
#
# Validation needs no equal shards. Workers in this course add up *counts of correct answers*, and divide once by the
# number of all images.
#
# ## Several processes, from a notebook
#
# Workers are processes. A notebook is one process, its *kernel*, and has threads of its own: for messages from your
# browser, for PyTorch's arithmetic, perhaps for CUDA. `fork()` would copy the memory of all of them but only the one
# thread that calls it. A lock that another thread held at that moment stays locked in the copy for ever, and a CUDA
# context does not survive at all. And fresh Python processes cannot import a function that exists only in a cell.
#
# So: **write the program to a file, and launch it.** PyTorch's launcher is `torchrun` (or `python -m
# torch.distributed.run`). It starts the processes and gives each its rank, the number of them all, and an address where
# they meet. The cell below takes functions that we wrote in cells, and makes them a program.

# %%
IMPORTS = """\
import math, os, sys, time
from datetime import timedelta
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists; lesson 09 says why
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from benchmarks.instruments.byte_counter import kernel_received
from cifar.data import load, normalise, shard, shuffle
from cifar.model import BootcampResNet
"""
MAIN = """
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
{name}(*sys.argv[1:])
dist.destroy_process_group()  # the group's threads end here, before Python itself ends
"""


# %%
def launch(main, size, *arguments, needs=()):
    """Write `main`, with the functions that it needs, to a file, and run it on `size` processes."""
    program = Path(f"{main.__name__}.py")
    sources = [inspect.getsource(function) for function in (*needs, main)]
    program.write_text("\n\n".join([IMPORTS, *sources, MAIN.format(name=main.__name__)]))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "localhost"]
    command += ["--nproc-per-node", str(size), str(program), *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    print(done.stdout, end="")


# %%
def hello():
    rank, size = dist.get_rank(), dist.get_world_size()
    message = torch.tensor([float(rank)])
    sending = dist.isend(message, (rank + 1) % size)
    dist.recv(received := torch.zeros(1), (rank - 1) % size)
    sending.wait()
    print(f"process {os.getpid()} is worker {rank} of {size}; its neighbour said {received.item():.0f}", flush=True)


launch(hello, workers)

# %% [markdown]
# The lines come in any order. Each worker has a process id of its own, and shares no memory with the rest.
#
# `isend` begins to send and goes on; `recv` waits. Had all workers called a blocking `send` first, a long message would
# leave each waiting for a neighbour that is itself still sending: a **deadlock**. Here a
# worker gives up after a minute of waiting, and the error says where.
#
# ## A parameter server
#
# One process is the **parameter server**, or server for short. The workers send it their gradients. It averages them,
# and sends the mean back. Here worker 0 does this beside its own work.
#
# This is the simplest case: one server, and all workers wait for it. The first large clusters for deep learning had
# many servers, and each held a part of the weights (Dean and others 2012; Li and others 2014). Dean's workers did not
# wait for each other either. The lab of this lesson (notebook 13)
# comes back to both ideas.


# %%
def server_mean(vector):
    """Replace the vector of each worker by the mean of all."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.send(vector, dst=0)
        dist.recv(vector, src=0)
        return
    received = torch.empty_like(vector)
    for worker in range(1, size):
        dist.recv(received, src=worker)
        vector += received
    vector /= size
    for worker in range(1, size):
        dist.send(vector, dst=worker)


# %% [markdown]
# Count what goes through the server's link, with $N$ bytes of gradient: $(K-1)N$ come in, $(K-1)N$ go out. The others
# have $N$ each way. So the server is the bottleneck, and every new worker makes
# it worse. With as many servers as workers, each server holds $N/K$ bytes, and gets them from $K-1$ workers. Then all
# links carry about $2N(K-1)/K$ bytes in each direction. That is what a ring sends, and you will see it next.
#
# ## A ring
#
# ![](drawings/server_and_ring.svg)
#
# Let all links work at the same time. Cut the vector into $K$ chunks. In each step every worker passes *one chunk* to
# its right-hand neighbour, and gets one from the left. In the first half (*reduce-scatter*) what comes in is **added**:
# a chunk collects the contribution of each worker that it passes. After $K-1$ steps each worker holds one chunk that is
# complete. In the second half (*all-gather*) the complete chunks go round once more, and what comes in **replaces**
# what was there. This is a **ring all-reduce** (Patarasuk and Yuan 2009; Sergeev and Del Balso 2018).
#
# Write one step of the first half, seen from above: the chunks of all workers before and after.


# %% exercise="ring_step"
def ring_step(chunks, step):
    ### BEGIN SOLUTION
    size = len(chunks)
    after = [[list(chunk) for chunk in worker] for worker in chunks]
    for rank in range(size):
        number, receiver = (rank - step) % size, (rank + 1) % size
        pairs = zip(chunks[receiver][number], chunks[rank][number], strict=True)
        after[receiver][number] = [own + new for own, new in pairs]
    return after
    ### END SOLUTION


# %% [markdown]
# Here is the whole ring, to move step by step. Let the workers send a wrong chunk, too.

# %%
from lessons import explore

explore("ring")

# %% [markdown]
# Let your function run. Each worker begins with the number 1 in every chunk, so a chunk's number says how many workers
# it has collected. Dark means complete.


# %%
def draw(ax, numbers, step):
    size = len(numbers)
    ax.imshow(numbers, cmap="Greys", vmin=0, vmax=size)
    ax.set(title=f"after step {step}" if step >= 0 else "before", xticks=range(size), yticks=range(size))
    ax.grid(False)
    for (row, column), number in np.ndenumerate(numbers):
        ax.text(column, row, f"{number:.0f}", ha="center", va="center", color="white" if number > size / 2 else "black")


state = [[[1.0] for _ in range(workers)] for _ in range(workers)]
figure, every = panels(*[("chunk", "worker")] * workers, size=(8, 2.6))
for step, ax in enumerate(every, -1):
    state = ring_step(state, step) if step >= 0 else state
    draw(ax, np.array(state)[:, :, 0], step)

# %%
complete = int((np.array(state)[:, :, 0] == workers).sum())
show(
    figure,
    f"Grids of chunks by worker, one after each step; the numbers grow along diagonals until {complete} are {workers}.",
    f"After {workers - 1} steps {complete} chunks are complete, one on each of {workers} workers.",
)

# %% [markdown]
# Now for real. Each process sees only its own chunks. It must know which one to send, which one comes, and whether to
# add it. One loop does both halves. Write its plan; the workers below follow it. (All that it needs belongs inside the
# function: they get nothing else of its cell.)


# %% exercise="ring_plan"
def ring_plan(rank, step, size):
    ### BEGIN SOLUTION
    if not 0 <= step < 2 * (size - 1):
        raise ValueError(f"no step {step} with {size} workers")
    return (rank - step) % size, (rank - 1 - step) % size, step < size - 1
    ### END SOLUTION


# %%
def ring_mean(vector):
    """Replace the vector of each worker by the mean of all, chunk by chunk."""
    rank, size = dist.get_rank(), dist.get_world_size()
    chunks = vector.tensor_split(size)  # views: what changes in a chunk changes in the vector
    for step in range(2 * (size - 1)):
        sent, coming, add = ring_plan(rank, step, size)
        received = torch.empty_like(chunks[coming])
        sending = dist.isend(chunks[sent], (rank + 1) % size)
        dist.recv(received, (rank - 1) % size)
        sending.wait()
        chunks[coming].copy_(chunks[coming] + received if add else received)
    vector /= size


# %% [markdown]
# How many bytes does each worker *send* in an update, with either design? Write it down before you measure it.


# %% exercise="traffic"
def traffic(scheme, workers, size):
    ### BEGIN SOLUTION
    if scheme == "parameter server":
        return [(workers - 1) * size] + [size] * (workers - 1)
    if scheme == "ring":
        return [2 * (workers - 1) * size // workers] * workers
    raise ValueError(f"no such scheme: {scheme}")
    ### END SOLUTION


# %% [markdown]
# ## How long does an exchange take?
#
# A message of $n$ bytes takes about $\alpha + \beta n$ seconds. The **latency** $\alpha$ is paid for each message, even
# for an empty one. $\beta$ is the time for one byte, and $1/\beta$ is the **bandwidth**. In a ring each worker sends
# $2(K-1)$ messages of $N/K$ bytes, one after the other. One server receives and sends $2(K-1)$ messages of $N$ bytes.
# Take 2 MB of gradients, a latency of 0.1 ms, and a link of 1 Gbit/s:

# %%
alpha, beta = 1e-4, 8 / 1e9  # seconds for a message, and for a byte
for count in (2, 4, 16, 64, 256):
    ring_ms, server_ms = (2e3 * (count - 1) * (alpha + beta * n) for n in (2e6 / count, 2e6))
    print(f"{count:3} workers: {ring_ms:5.1f} ms in a ring, {server_ms:7.1f} ms with one server")

# %% [markdown]
# With few workers the bytes decide, and the ring's time hardly grows. With many workers its messages are short, and the
# latency decides. Lesson 09 fits this model to several **hosts**, which are computers in one network.
#
# ## Training with both
#
# A training loop, whole. It takes this worker's shard of one shuffle of CIFAR-10, and makes 16 updates of plain SGD
# with a **global batch** of 128: each of $K$ workers has 128 / $K$ images. The line that makes it distributed is
# `mean(vector)`. For one process the mean has nothing to do, so we run that one here, in the notebook.


# %%
def train_by_hand(mean, rank, size, train, seed):
    torch.manual_seed(seed)  # the same weights on all workers
    net, losses = BootcampResNet(), []
    for part in shard(shuffle(len(train), seed, 0), rank, size).split(128 // size)[:16]:
        loss, vector = gradient(net, *train.batch(part))
        mean(vector)
        weights = parameters_to_vector(net.parameters()).detach() - 0.1 * vector
        vector_to_parameters(weights, net.parameters())
        mean(loss := loss.reshape(1))
        losses.append(loss.item())
    return {"losses": losses, "weights": weights}


assert 128 % workers == 0, f"a global batch of 128 does not divide among {workers} workers: take 2, 4 or 8"
one = train_by_hand(lambda vector: None, 0, 1, train, seed)

# %% [markdown]
# Now the same loop on real processes, with the server and with the ring. The kernel counts what comes in.


# %%
def both_ways(seed, images):
    rank, size = dist.get_rank(), dist.get_world_size()
    train, _ = load(limit=int(images))
    for way in (server_mean, ring_mean):
        before = kernel_received()
        found = train_by_hand(way, rank, size, train, int(seed))
        after = kernel_received()
        received = "not counted on this system"
        if None not in (before, after):
            received = f"{(after - before) / len(found['losses']) / 1e6:.2f} MB an update"
        print(f"{way.__name__}, worker {rank} of {size}: received {received}", flush=True)
        if rank == 0:
            torch.save(found, f"{way.__name__}.pt")
        dist.barrier()  # nobody begins the next way before all have counted


launch(both_ways, workers, seed, images, needs=[gradient, server_mean, ring_plan, ring_mean, train_by_hand])

# %% [markdown]
# Compare the bytes with your formula. A worker receives in the ring as much as it sends. With a server, worker 0
# receives one gradient from each of the others.

# %%
size = sum(parameter.nbytes for parameter in net.parameters())
size -= size % workers  # so that it divides
print(f"a gradient has {size / 1e6:.2f} MB")
for scheme in ("parameter server", "ring"):
    sent = ", ".join(f"{count / 1e6:.2f}" for count in traffic(scheme, workers, size))
    print(f"{scheme}: by the formula the workers send {sent} MB an update")

# %% [markdown]
# And have they computed the same? Three runs, one trajectory: that is the claim.

# %%
server, ring = (torch.load(f"{way.__name__}.pt") for way in (server_mean, ring_mean))
figure, ax = axes("update", "training loss (nats)", size=(8, 3))
ax.plot(range(1, 17), one["losses"], lw=5, alpha=0.3, marker="", label="one process")
ax.plot(range(1, 17), server["losses"], label=f"server, {workers} workers")
ax.plot(range(1, 17), ring["losses"], label=f"ring, {workers} workers")
ax.legend()
apart = max(((other["weights"] - one["weights"]).norm() / one["weights"].norm()).item() for other in (server, ring))
show(
    figure,
    f"Three lines over 16 updates that cannot be told apart, from {one['losses'][0]:.2f} to {one['losses'][-1]:.2f}.",
    f"The weights of one process, of {workers} with a server and of {workers} in a ring: at most {apart:.0e} apart, "
    "relative to their length. Float32 adds in another order, and no more.",
)
assert apart < 1e-3, "the means differ by more than rounding: look at ring_plan first"

# %% [markdown]
# ## Whose loss does the program print?
#
# After the exchange all workers have the same *gradient*. But each has computed the *loss* of its own images, and
# `print(loss)` on rank 0 shows one worker's. It is an honest estimate, only noisy: the mean over $K$ workers should
# scatter $\sqrt{K}$ times less. Look at how the printed line jumps, and at whether the scatter follows $1/\sqrt{K}$.

# %%
runs = live("C08", device=device, seed=seed)

# %%
result = saved("C08")

# %% [markdown]
# Nothing is wrong with the training if you print rank 0's loss. Your curve is just noisier than it need be, and two
# runs that are compared by it look more different than they are. One all-reduce of a single number an epoch cures it:
# see how `cifar_base.py` calls `hvd.allreduce` on the loss. (In `train_by_hand`, `mean` does it at every update.)
#
# ## Summary
#
# - Data parallelism: each worker computes a gradient on its own images, and all apply the mean of all gradients.
# - The mean of $K$ gradients is the gradient of a $K$ times larger batch, exactly: if the counts are equal or used as
#   weights, and if images do not see each other as in batch normalisation.
# - The link of a single parameter server carries bytes in proportion to $K$. In a ring, or with as many servers as
#   workers, the bytes of a link hardly grow.
# - What one worker prints is one worker's.
#
# So the average loses nothing, if it is done right. It is not the suspect who made the four workers' network worse.
# But a plain mean over unequal counts may be, and so may batch normalisation with statistics of its own on each worker.
#
# The lab of this lesson is notebook 13. There you ask who should compute, whether everybody must wait, how images get
# to the workers, and what the loss must be divided by. There you also cut a network in two.
#
# ## Questions
#
# <details><summary>Four workers in a ring, and one has a link half as fast as the others. How fast is the ring?</summary>
#
# Half as fast. Every chunk passes every link, and all workers wait for each other at each step. With a parameter server
# the slow link would delay one worker's gradient only, but a synchronous update waits for that one as well.
#
# </details>
#
#
# <details><summary>All workers print the same training loss to the last digit, at every update. Good news?</summary>
#
# Only if it was averaged before printing. Losses of different images differ. Equal ones mean that every worker has the
# same images (and the same distortions): $K$ workers do the work of one. Print the indices of a batch on each worker.
#
# </details>
