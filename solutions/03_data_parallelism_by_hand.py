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
# server, and a ring all-reduce by your own plan, on real processes; count what each sends; cut a network in two and
# train the halves in two processes; and tell synchronous, asynchronous and elastic designs apart.
#
# **Time:** 60 minutes on 2 CPU cores, about three of them waiting. **Builds on:** 01 (the noise of a gradient) and 02
# (the training loop of one worker).
#
# Horovod does all of this for you from notebook 04 on. But its few lines stand for decisions that go wrong in silence:
# sum or mean, divided by what, over which images. Whoever has written them once reads them differently.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import inspect
import os
import subprocess
import sys
import time
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
from lessons import live, saved, show

# %% [markdown]
# ## Why several processors?
#
# One processor works through its images one after the other. Two processors can each take half of them, at the same
# time. Is the training then twice as fast?
#
# In the next experiment each worker has one core of this machine for itself. Think of the core as its GPU. First one
# worker trains alone on one core. Then two workers train on two cores, and exchange their gradients after each update.
# Write down your guess: how many images per second will two workers manage, if one manages 100?

# %%
if cores() > 1:
    runs = live("cores", seed=seed)
else:
    print("This machine has one core. See below what another machine with two cores measured.")

# %%
result = saved("cores")

# %% [markdown]
# Two workers are nearly twice as fast as one, if each keeps a batch of 64 images. This is called **weak scaling**. They
# gain less if they share one batch of 64, so that each has only 32. This is called **strong scaling**: the exchange
# takes as long as before, and there is less to compute between two exchanges. The dashed line is what a simple model
# says for four and eight workers, each with a core of its own.
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
# each compute what one worker computes with $Kn$**. No approximation: they differ by rounding alone. (Whether so large
# a batch is *good* is another question, that of notebook 05.) But read its two conditions. The counts are equal, or are
# used as weights. And each image's gradient depends on that image alone.
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
# Here theory and practice part, and it is the second condition that breaks. Batch normalisation makes images of one
# batch see each other: mean and variance come from the images at hand. A worker has only its own at hand. Both runs are
# legitimate, but they are not the *same* run. So "multi-GPU training equals a larger batch" is true of the gradient
# averaging and false of the usual network. Notebook 06 asks whether it matters for the accuracy.
#
# ### Shards that do not divide evenly
#
# 50,000 images over 3 workers leave two over, and the last batch of an epoch is often short. What if one worker has
# fewer images, and we take the plain mean all the same? Left: the error of one batch. Right: what remains of it after
# averaging over several batches. Noise would fade, a bias stays.

# %%
runs = live("C02", device=device, seed=seed)

# %%
result = saved("C02")

# %% [markdown]
# The plain mean gives the few images of the small shard too much weight. With shuffled data that is extra noise. With
# data in the order of classes it pulls every update the same way. Three cures: weigh by counts, as you did; give every
# worker equally many and leave the rest for another epoch (what `cifar.data.shard` does); or pad.
#
# Padding is what trips people in **validation**: repeat a few images to make the shards equal, and they count twice.
# Workers in this course add up *counts of correct answers* over unequal shards, and divide once by all images. A sum
# needs no equal parts.

# %% [markdown]
# ## Several processes, from a notebook
#
# Workers are processes. A notebook is one process, its *kernel*, and has threads of its own: for messages from your
# browser, for PyTorch's arithmetic, perhaps for CUDA. `fork()` would copy the memory of all of them but only the one
# thread that calls it. A lock that another thread held at that moment stays locked in the copy for ever, and a CUDA
# context does not survive at all. Starting fresh Python processes has another problem: they cannot import a function
# that exists only in a cell.
#
# So: **write the program to a file, and launch it.** It is what you would do on a cluster anyway. PyTorch's launcher is
# `torchrun` (or `python -m torch.distributed.run`). It starts the processes and gives each its rank, the number of them
# all, and an address where they meet. The cell below takes functions that we wrote in cells, and makes them a program.

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
# The lines come in any order: nobody told the workers to wait for each other's printing. Each has a process id of its
# own, and shares no memory with the rest. What it knows of others, it has received.
#
# `isend` begins to send and goes on; `recv` waits. Had all workers called a blocking `send` first, a long message would
# leave each waiting for a neighbour that is itself still sending: a **deadlock**. Here a
# worker gives up after a minute of waiting, and the error says where.
#
# ## A parameter server
#
# One process is the **server**. The workers send it their gradients. It averages them, and sends the mean back. Here
# worker 0 does this beside its own work.
#
# This is the simplest case: one server, and all workers wait for it. The first large clusters for deep learning had
# many servers, and each held a part of the weights (Dean and others 2012; Li and others 2014). Dean's workers did not
# wait for each other either. You will meet both ideas again below.


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
# Choose how many workers there are, and how fast the link is:

# %%
from lessons import explore

explore("server")

# %% [markdown]
# Let all links work at the same time. Cut the vector into $K$ chunks. In each step every worker passes *one chunk* to
# its right-hand neighbour, and gets one from the left. In the first half (*reduce-scatter*) what comes in is **added**:
# a chunk collects the contribution of each worker that it passes. After $K-1$ steps each worker holds one chunk that is
# complete. In the second half (*all-gather*) the complete chunks go round once more, and what comes in **replaces**
# what was there. (Patarasuk and Yuan 2009; Sergeev and Del Balso 2018.)
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
# Now for real. It is the same arithmetic, but each process sees only its own chunks: it must know which one to send,
# which one comes, and what to do with it. Both halves have the same pattern of who sends what, so one loop does for
# both. Write its plan; the workers below follow it. (All that it needs belongs inside the function: they get nothing
# else of its cell.)


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
# Now the same loop on real processes, once with the server and once with the ring. The operating system's kernel counts
# what comes in through the connections of each.


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
# ## Who should compute, and over which links?
#
# A parameter server could do more than average: workers run the forward pass, and all gradients are computed in one
# place. Source S3 objects. Here are four ways, on real processes, with real gradients:
# the server *computes* all gradients (workers send it their activations), the server *averages* gradients, all send
# their gradient to all, and the ring. Before you look, guess which way uses most bytes at the busiest worker, and which
# takes most time on *this* machine.

# %%
runs = live("C21", device=device, seed=seed)

# %%
result = saved("C21")

# %% [markdown]
# Where the server computes, activations travel instead of gradients. They grow with the batch, gradients do not. And
# one process does everybody's back-propagation while the others sit idle. In a convolutional network that is the
# worst of all. It is not a law: a wide fully connected layer has many weights and few activations, and sending its
# activations can be cheaper (Krizhevsky 2014 trains that part so).
#
# A word on counting. The server's $2(K-1)N$ counts both directions, the often quoted $2N(K-1)/K$ of the ring only one.
# Counted alike, in and out, the ring has $4N(K-1)/K$. With two workers that is no advantage at all; the server's share
# then grows with $K$, the ring's stays below $4N$.
#
# Here theory and time part. On paper the ring's link is the least busy. But the workers of one machine have no links of
# their own: all messages go through the same memory, and all workers share the cores. With more workers than cores they
# take turns to compute, and that alone makes an update longer. All together, server and ring send the same sum of
# bytes, $2(K-1)N$. Where all send to all it is $K(K-1)N$, which is $K/2$ times as much: look on the right how little of
# that you see. The ring pays off where each worker has its own network card. The formula tells you what the busiest
# link carries. Whether that link is what you wait for, only a clock tells.

# %% [markdown]
# ## The batch: keep it, or divide it?
#
# You have a script that works with a batch of 128 on one GPU. With two GPUs, do you leave 128 in the script? Then the
# **global batch** is 256, and you train something else: half as many updates an epoch (notebook 05). Or do you write
# 64? Then the global batch is as before, and by what you have seen the run should be *the same run*. Sources S0 and S1
# say so, and add that it has a price. Look left at whether the lines coincide, and right at what a worker achieves.

# %%
runs = live("C05", device=device, seed=seed)

# %%
result = saved("C05")

# %% [markdown]
# If your multi-GPU accuracy is lower than before, this is the first test: divide the per-worker batch by $K$, switch
# off what each worker draws for itself (augmentation, dropout), take batch normalisation out or synchronise it, and
# compare the first tens of updates with one worker's. If they differ there by far more than another order of summation
# makes (the verdict gives both numbers), it is a bug. Later, rounding alone drives two right runs apart. If they agree
# at first, your averaging is right, and the rest of the question is about batch size and learning rate.
#
# The price: there are more exchanges for the same images, and smaller batches use a processor less well (the fixed cost
# of an update in notebook 02). In the right panel the lines with exchange show both costs. The lines without exchange
# show the second cost alone, and on this machine it is too small to be seen.

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

# %% [markdown]
# ## Feeding the workers
#
# **Is every GPU seeing the same data?** Ask it of any distributed program, because the wrong answer raises no error.
# There are two halves to it: what is *sent*, and what is *used*.
#
# Sent: if one process reads the images, it can send the whole global batch to everybody, and each takes its part:
# that is simple to write. Or it sends each its part only.

# %%
runs = live("C22", device=device, seed=seed)

# %%
result = saved("C22")

# %% [markdown]
# The bytes follow the formula to the last digit. The time is another matter: compare the ratio of the two times in the
# verdict with the factor in the bytes. Cutting a batch into parts costs something as well, and inside one machine bytes
# are cheap. Over a network, or a bus that also carries gradients, they are not.
#
# The scripts of this course send no images at all. Each worker reads the data set itself, and computes *which* images
# are its own. All that workers must agree on is a seed:

# %%
order = shuffle(12, seed=seed, epoch=0)
print("the shuffle:", order.tolist())
for rank in range(3):
    print(f"worker {rank} of 3:", shard(order, rank, 3).tolist())

# %% [markdown]
# Choose a mistake, and see what becomes of the shards:

# %%
explore("shards")

# %% [markdown]
# Used: suppose each worker shuffles for itself, or draws its images at random. Then no two agree. How much of the data
# set does an epoch still cover? If $n$ images are drawn from $n$ with replacement, an image is missed with probability
# $(1 - 1/n)^n$, about $1/e$. Parts of $K$ independent shuffles miss it with probability $(1 - 1/K)^K$. Real workers go
# through an epoch below, and report which images they fetched.

# %%
runs = live("C25", device=device, seed=seed)

# %%
result = saved("C25")

# %% [markdown]
# One shuffle, divided, is free: it takes the same seed on all workers, and `rank` to pick the part. Does it raise the
# *test accuracy*? Compared with images drawn at random, no difference was seen. Over many epochs even careless draws
# see nearly all images. But an epoch then no longer means what it says.

# %% [markdown]
# ## Sum or mean, and divided by what?
#
# An all-reduce gives sums. Horovod divides by $K$ for you, PyTorch's `all_reduce` does not, and the loss has been
# divided by something before. Say each of $k$ workers has $n$ images, and their gradients are **summed**. (As in Goyal
# and others, $k$ is here what is $K$ elsewhere in this notebook: $kn$ is the global batch.) Then each loss must be
# divided by $kn$. With $n$, the sum is $k$ times too large. (Summing losses divided by $kn$, and averaging losses
# divided by $n$, is the same thing.)
#
# "Never mind, I divide the rate by $k$." That works for plain SGD if *everything* is $k$ times too large. Weight decay
# $\frac{\lambda}{2}\|w\|^2$ need not be. It may be **inside** each worker's loss, and then is summed too; or
# **outside**: added once, after the sum, which is what an optimizer's `weight_decay` does. Four cases, with $\nabla L$
# the mean over all $kn$ images:
#
# | divided by | decay inside: the sum is | decay outside: the sum is |
# | --- | --- | --- |
# | $n$ | $k\,\nabla L + k\,\lambda w$ | $k\,\nabla L + \lambda w$ |
# | $kn$ | $\nabla L + k\,\lambda w$ | $\nabla L + \lambda w$ |
#
# Source S3 says: divide by $kn$, not $n$, or the decay is $k$ times too strong. (Goyal and others 2017, section 3, warn
# of the same mistake.) In which cells of the table is that so? Decide, then run: the bars are fitted to the summed
# gradients of real workers. On the right all four train, beside one worker with all images.

# %%
runs = live("C23", device=device, seed=seed)

# %%
result = saved("C23")

# %% [markdown]
# So the advice is right, and the reason given is not quite. Only the last cell is the training run you meant. But a
# decay that is $k$ times too strong comes from *where it is added*: inside each loss. Dividing by $n$ makes the
# **data** term $k$ times too strong. With the decay outside, and the rate divided by $k$ to compensate, the decay ends
# up $k$ times too *weak*. With everything $k$ times too strong, the run is one with a $k$ times larger rate: as long as
# that rate is stable it heads for the same weights faster, and scatters more about them (notebook 01). Where one
# worker's line still rises at the end of the figure it has not arrived yet: the gap between the two is not another
# goal.
#
# With Adam the picture changes again. It divides by the gradient's own size, so a factor common to all terms drops out,
# and a sum trains like a mean. That is convenient, and hides the mistake until somebody switches to SGD.

# %% [markdown]
# ## Must everyone wait?
#
# All of this was **synchronous**: nobody goes on before everybody's gradient is there. The designs in one table:
#
# | design | who has the weights | who waits | what it costs |
# | --- | --- | --- | --- |
# | synchronous, one parameter server | the server; workers get a copy each update | all, for the slowest and for the server's link | the bottleneck at the server, unless many servers share the weights |
# | synchronous, all-reduce | everyone, always equal | all, for the slowest | nobody may fail |
# | asynchronous, parameter server | the server; workers' copies are out of date | nobody | gradients are *stale*: computed at weights that are gone |
# | elastic averaging (EASGD) | each its own, tied to a centre by a spring | nobody, or now and then | workers explore apart; one more constant, $\rho$ |
#
# Asynchronous training was the answer to slow and failing machines in large clusters (Dean and others 2012). Later
# comparisons found that a synchronous run, with a few spare workers so as not to wait for the slowest, reaches better
# accuracy in the same time (Chen and others 2016, arXiv:1604.00981), and all-reduce libraries made it simple. Horovod
# is synchronous.
#
# The experiment delays gradients by a known number of updates, and lets workers go their own ways on springs of
# different stiffness (Zhang and others 2015). Look left for a loss that rises with staleness at one and the same rate,
# and right for workers that stay closer together with a stiffer spring.

# %%
runs = live("C10", device=device, seed=seed)

# %%
result = saved("C10")

# %% [markdown]
# Why does staleness hurt? A gradient says where downhill is *at the weights where it was computed*. Apply it eight
# updates later, and you correct an error that has been corrected already: you overshoot, just as with too high a rate.
# In theory lower rates forgive more staleness; here all runs have one rate. The right panel shows one thing only: a
# stiffer spring keeps the workers closer together. What that does to the centre stands in the caption. A weak spring
# leaves the centre behind, since it starts at the first weights and moves only as far as it is pulled. Whether some
# stiffness in between is best, so few updates cannot tell.

# %% [markdown]
# ## Cut the network, not the data
#
# ![](drawings/pipeline.svg)
#
# **Model parallelism** is the other way: each process holds a *part of the network*, and all images pass through all
# processes. You need it when the network does not fit on one device. Forward, stage 0 sends its activations to stage 1.
# Backward, stage 1 sends back the gradient of the loss with respect to them; `output.backward(received)` goes on from
# there. Nobody ever exchanges weights.


# %%
def first_stage(stage, pixels, labels, busy):
    began = time.time()
    output = stage(pixels)
    busy.append((began, time.time()))
    dist.send(output.detach().contiguous(), dst=1)
    dist.recv(received := torch.empty(output.shape), src=1)
    began = time.time()
    output.backward(received)
    busy.append((began, time.time()))


def last_stage(stage, pixels, labels, busy):
    dist.recv(activations := torch.empty(len(labels), 256, 7, 7), src=0)
    began = time.time()
    F.cross_entropy(stage(activations.requires_grad_()), labels).backward()
    busy.append((began, time.time()))
    dist.send(activations.grad.contiguous(), dst=0)


# %% [markdown]
# The program around them: both processes build the same network, and each keeps its part. Stage 1 needs the labels,
# stage 0 the pixels.


# %%
def two_stages(seed, images):
    rank, busy = dist.get_rank(), []
    torch.manual_seed(int(seed))
    layers, (train, _) = list(BootcampResNet()), load(limit=int(images))
    stage = torch.nn.Sequential(*(layers[:5], layers[5:])[rank])
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.05)
    for part in shuffle(len(train), int(seed), 0).split(64)[:6]:
        pixels, labels = train.batch(part)
        optimizer.zero_grad()
        (first_stage, last_stage)[rank](stage, normalise(pixels), labels, busy)
        optimizer.step()
    torch.save({"weights": parameters_to_vector(stage.parameters()).detach(), "busy": busy}, f"stage-{rank}.pt")


launch(two_stages, 2, seed, images, needs=[first_stage, last_stage])

# %% [markdown]
# The same six updates in one process, to check it:

# %%
torch.manual_seed(seed)
whole = BootcampResNet()
optimizer = torch.optim.SGD(whole.parameters(), lr=0.05)
for part in shuffle(len(train), seed, 0).split(64)[:6]:
    pixels, labels = train.batch(part)
    optimizer.zero_grad()
    F.cross_entropy(whole(normalise(pixels)), labels).backward()
    optimizer.step()
stages = [torch.load(f"stage-{rank}.pt") for rank in range(2)]
both = torch.cat([stage["weights"] for stage in stages])
apart = ((both - parameters_to_vector(whole.parameters())).norm() / both.norm()).item()
print(
    f"{len(stages[0]['weights']):,} and {len(stages[1]['weights']):,} weights; {apart:.0e} from one process, relatively"
)
assert apart < 1e-4

# %% [markdown]
# Same weights, so it is right. Is it fast? Each process noted when it was computing. Look at the gaps.

# %%
figure, ax = axes("time (ms)", "stage", size=(8, 2.2))
zero, end = stages[0]["busy"][2][0], stages[0]["busy"][-1][1]  # from the second update: the first one also warms up
idle = []
for rank, stage in enumerate(stages):
    shown = [(1000 * (began - zero), 1000 * (ended - began)) for began, ended in stage["busy"] if began >= zero]
    ax.broken_barh(shown, (rank - 0.35, 0.7), color=("0.35", "0.65")[rank])
    idle.append(1 - sum(length for _, length in shown) / (1000 * (end - zero)))
ax.set(yticks=(0, 1), ylim=(1.6, -0.6))
show(
    figure,
    f"Bars of two stages in turn, never at the same time; in neither pass {idle[0]:.0%} and {idle[1]:.0%} of the time.",
    f"When each stage computed, in five updates. Stage 0 was in neither pass for {idle[0]:.0%} of the time, stage 1 for "
    f"{idle[1]:.0%}: then it waited, or fetched images, sent, received and updated.",
)

# %% [markdown]
# While one stage computes, the other waits for it. So two processes are no faster than one; they only share the
# *memory*. Pipelines fill the gaps: cut the batch into micro-batches, and let stage 0 begin with the second while stage
# 1 has the first (Huang and others 2018, GPipe).
#
# The two kinds also send different things. Data parallelism sends gradients: as many as there are *weights*, whatever
# the batch. Model parallelism sends activations at the cut, and their gradients: as many as *images times width*.

# %%
cut = 2 * 4 * 256 * 7 * 7  # bytes an image: float32, forward and backward
weights = 4 * sum(parameter.numel() for parameter in whole.parameters())
print(f"model parallel: {cut / 1e3:.0f} KB an image, so {64 * cut / 1e6:.1f} MB an update of 64 images")
print(f"data parallel, ring of two: {2 * weights / 1e6:.1f} MB an update in and out of a worker, whatever the batch")
print(f"they are equal at {2 * weights / cut:.0f} images")

# %% [markdown]
# | | data parallelism | model parallelism |
# | --- | --- | --- |
# | each process has | the whole network, part of the images | part of the network, all images |
# | sends | gradients, once an update | activations and their gradients, at every cut |
# | limited by | the network must fit on one device, unless its state is sharded (notebook 09) | stages wait for each other |
# | result | that of a larger batch | exactly that of one process |
#
# Large models use both: groups of devices hold one copy of the network, and there are several groups.
#
# ## Three ways to have it done for you
#
# | | `DataParallel` | `DistributedDataParallel` | Horovod |
# | --- | --- | --- | --- |
# | what it is | one process, a thread for each GPU | a process for each GPU | a process for each GPU |
# | launch | none | `torchrun` | `horovodrun` |
# | the network | copied to all GPUs at *every* batch | copied once, at the start | copied once, by your broadcast |
# | the batch | read and cut up by the one process | each process reads its own shard | each process reads its own shard |
# | gradients | collected on the first GPU | all-reduce, during back-propagation | all-reduce, during back-propagation |
# | you write | one line | a few lines | a few lines |
# | hosts | one | many | many |
#
# You now recognise the first column: a parameter server on GPU 0, inside one process. PyTorch's own documentation
# recommends the second instead. The second and third are your ring with better engineering: gradients are
# gathered into larger messages, and travel while back-propagation still goes on (notebook 04). Both average.
# Notebook 09 runs the same training in both, and compares their weights.
#
# ## Summary
#
# - The mean of $K$ gradients is the gradient of a $K$ times larger batch, exactly: if the counts are equal or used as
#   weights, and if images do not see each other as in batch normalisation.
# - The link of a single parameter server carries bytes in proportion to $K$. In a ring, or with as many servers as
#   workers, the bytes of a link hardly grow. On one machine, you may see no difference.
# - Divide one shuffle among the workers: nothing is sent, and each image is used once.
# - Sum or mean, $n$ or $kn$, decay inside or outside: only one of four combinations is the run you meant.
# - What one worker prints is one worker's.
# - Model parallelism shares memory, not time, until a pipeline fills the gaps.
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
# <details><summary>Your program divides the loss by the per-worker batch, sums gradients, uses Adam with
# <code>weight_decay</code> in the loss of each worker, and trains well. You switch to SGD and it diverges. Why?</summary>
#
# Gradients are $k$ times too large, decay included. Adam divides that factor out; for SGD it is a rate $k$ times as
# high. Use means: divide by $kn$, or let the all-reduce average.
#
# </details>
#
# <details><summary>All workers print the same training loss to the last digit, at every update. Good news?</summary>
#
# Only if it was averaged before printing. Losses of different images differ. Equal ones mean that every worker has the
# same images (and the same distortions): $K$ workers do the work of one. Print the indices of a batch on each worker.
#
# </details>
