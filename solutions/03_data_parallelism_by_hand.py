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
# **After this notebook you will be able to** average gradients correctly, also when the workers have different numbers
# of images; average them on real processes, by a parameter server and by a ring that you have planned; and count the
# bytes that each worker sends.
#
# **Time:** about {{minutes_03}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 01 (the noise
# of a gradient) and 02 (the training loop of one worker).
#
# From notebook 04 on, Horovod does all of this in a few lines. If you have done it once by hand, you know what these
# lines do.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import os

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.instruments.byte_counter import kernel_received
from cifar.data import load, normalise, shard, shuffle
from cifar.model import BootcampResNet
from cifar.support.environment import cores
from lessons import compare, explore, live, saved, torchrun

# %% [markdown]
# ## Why several processors?
#
# One processor works through its images one after the other. Two processors can each take half of them, at the same
# time. Is the training then twice as fast?
#
# A **worker** is one running copy of the training program. Here each worker has one core of this machine for itself.
# Think of the core as its GPU. First one worker trains alone, with 64 images in an update. Then two
# workers train, and exchange their gradients in each update. There are two ways to share the work:
#
# - **Weak scaling:** each worker keeps its batch of 64 images. So an update uses 128.
# - **Strong scaling:** the workers share one batch of 64 images. Each has 32.
#
# **Guess first,** for weak scaling. One worker alone trains on 100 images. On how many do two workers train together,
# in the same time? Write a number into the next cell.

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
# In the saved experiment they manage {{cores_weak}} with weak scaling. With strong scaling they gain less: each has
# less to compute, but the exchange takes as long as before. The dashed line is a prediction for four and eight workers,
# each with a core of its own.
#
# In most other experiments of this course, one worker already uses all cores. Two workers must share them, so they
# cannot be faster. Such times say nothing about workers that have a GPU each.
#
# ## The loop in four steps
#
# ![](drawings/one_update.svg)
#
# All workers start with equal weights. Then each of them repeats these four steps:
#
# 1. Take the next batch of your own images.
# 2. Compute the mean loss of these images, and its gradient.
# 3. Give your gradient to the others, and get the mean of all gradients.
# 4. Change your weights with this mean.
#
# All start equal, and all apply the same change. So they stay equal, and nobody has to send weights. This is called
# **data parallelism**. Step 3 is the only distributed step. Most of this notebook is about it. (One can also divide the
# network among the workers, in place of the images. This is harder, and it is needed only if the network does not fit
# on one worker. Lesson 10 describes it, and the lab of this lesson does it.)
#
# ## What should come out?
#
# There are $K$ workers. The images of a worker are its **shard**. Worker $r$ has $n_r$ images of its shard in its
# batch, and their mean gradient is $g_r$. You want the mean gradient of all images together. But you have only the
# $g_r$ and the counts $n_r$.
#
# Write the mean that is right for any counts. A hint: if you know the mean of $n_r$ gradients, what is their sum?


# %% exercise="average_gradients"
def average_gradients(gradients, counts):
    ### BEGIN SOLUTION
    total = sum(counts)
    columns = zip(*gradients, strict=True)
    return [sum(n * value for n, value in zip(counts, column, strict=True)) / total for column in columns]
    ### END SOLUTION


# %% [markdown]
# Now we try it with real images. Three workers have 96, 24 and 8 images. We join their gradients in two ways: by the
# mean of the three means, and by your weighted mean. We compare both with the gradient of all 128 images in one piece.
# The network is a small ResNet.


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
weighted = torch.tensor(average_gradients(mine[:, :1000].tolist(), counts))  # the first 1,000 numbers are enough
for name, found in (("mean of means", mine.mean(0)[:1000]), ("weighted", weighted)):
    away = (found - together[:1000]).norm() / together[:1000].norm()
    print(f"{name}: {away:.1e} away, relative to the gradient's length")

# %% [markdown]
# Here 0 is perfect, and 1 is as bad as a gradient of zeros. Your weighted mean is right up to rounding. The mean of
# means is far off. Why? The worker with 8 of the 128 images should count for 8/128, which is 1/16. In the mean of means
# it counts for 1/3. And the gradient of only 8 images is mostly noise. Here is the right mean as a formula. $n_r\, g_r$
# is the sum of the gradients of worker $r$, so
#
# $$g = \frac{\sum_r n_r\, g_r}{\sum_r n_r}.$$
#
# If all counts are equal, this is the plain mean.
#
# ### Shards that do not divide evenly
#
# 50,000 images do not divide among 3 workers: two are left over. And the last batch of an epoch is often short. What
# happens if one worker has fewer images, and we take the plain mean all the same?
#
# Here four workers share a batch. Three have 16 images each, and the last one has fewer. The images are *shuffled*, or
# *sorted* by their class. The left panel shows the error of one batch. For the right panel, we average the gradients of
# several batches first. Random errors then cancel each other. An error that always points in the same direction, a
# *bias*, stays. **Guess first:** which order leaves a bias?

# %%
result = saved("C02")

# %% [markdown]
# The plain mean gives the small shard too much weight. If the data are shuffled, it holds other images each time. So
# this is only more noise. If the data are sorted, it holds images of the last classes each time. Then these classes
# pull every update in their direction. (A worker without any image must take part, too. It gives zeros as its gradient,
# and the count 0. A mean over no images would be 0 / 0, which PyTorch calls `nan`, and then the sum of all workers
# would be `nan`, too.)
#
# There are three cures. Weigh by the counts, as you did. Or give every worker equally many images, and leave the rest
# for another epoch: `cifar.data.shard` does this. Or fill up the short shard with images that are used twice.
#
# A test of the trained network needs no equal shards. Add up the *counts of correct answers*, and divide once by the
# number of all images.
#
# ### On real workers: is it exact?
#
# Do $K$ workers with $n$ images each compute what one worker computes with the same $Kn$ images? In the next run, real
# workers average their gradients, and one process computes the gradient of all their images.
#
# Many networks use **batch normalisation**. It takes the numbers that a layer computes for all images of a batch. It
# subtracts their mean, and divides by their standard deviation. These two are its *statistics*. We compare three
# networks:
#
# - the small ResNet, without batch normalisation,
# - with it: each worker uses the statistics of its own images,
# - with it: the workers compute the statistics of all images together.
#
# **Guess first.** All compute with 16 digits, so rounding makes a difference of about $10^{-15}$. Which of the three
# networks differ only by rounding?

# %%
runs = live("C01", device=device, seed=seed)

# %%
result = saved("C01")

# %% [markdown]
# The first and the third are exact, up to rounding. The second is not. Batch normalisation makes the gradient of an
# image depend on the other images of its batch. In one process these are all images. On a worker they are only its own
# images. So the gradient depends on how the images are divided among the workers. Statistics of all images cure this.
# Notebook 06 asks whether it matters for the accuracy.
#
# So **$K$ workers with $n$ images each compute what one worker computes with the same $Kn$ images**, as long as no
# image's gradient depends on how the images are divided.
#
# You now have the right mean. From here on, the question is how it gets from process to process. This is a good place
# for a break.
#
# ## Several processes, from a notebook
#
# Each worker is a process, a running program with memory of its own. A notebook is a single process. So we write the
# worker's program as a function. `torchrun(function, workers)` writes it to a file, and starts that file several times.
# It uses PyTorch's launcher of the same name. Each process gets a number, its **rank**, counted from 0. It also learns
# the *size*, which is the number of workers.
#
# The library **Gloo** carries the messages. The programs use three calls:
#
# - `isend` begins to send, and the program goes on. `sending.wait()` waits until it is sent.
# - `recv` waits until a message has come.
# - `send` waits until the message is taken.


# %%
def hello():
    rank, size = dist.get_rank(), dist.get_world_size()
    message, received = torch.tensor([float(rank)]), torch.zeros(1)
    sending = dist.isend(message, (rank + 1) % size)
    dist.recv(received, (rank - 1) % size)
    sending.wait()
    print(f"process {os.getpid()} is worker {rank} of {size}; its neighbour said {received.item():.0f}", flush=True)


torchrun(hello, workers)

# %% [markdown]
# The lines come in any order. Why not `send` here? Every worker would wait in `send`, and nobody would reach `recv`.
# This is a **deadlock**. (Small messages may hide it, because the system can store them.) In this course a worker gives
# up after a minute, and the error says where.
#
# <details><summary>Why is it not enough to call the function several times?</summary>
#
# A call in the notebook starts no new process. The system call `fork()` copies a process, but only one of its threads.
# If the copy needs something that another thread was just using, it waits for ever. The state of a GPU cannot be copied
# at all.
#
# </details>
#
# ## A parameter server
#
# One process is the **parameter server**, or server for short. The workers send it their gradients. It averages them,
# and sends the mean back. Here worker 0 does this beside its own work. The workers can use `send`: while they send, the
# server receives.
#
# The first large clusters had many servers (Dean and others 2012; Li and others 2014). The lab of this lesson, notebook
# 13, comes back to them.


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
# All gradients go through the server's **link**, its connection to the network. Every new worker adds to its load. So
# the server becomes the bottleneck.
#
# ## A ring
#
# ![](drawings/server_and_ring.svg)
#
# All links should work at the same time. So each worker cuts its vector into $K$ chunks. In each step every worker
# sends *one chunk* to its right-hand neighbour, and gets one from its left-hand neighbour. Here are three workers and
# three chunks of one number each. A bold number has just changed.
#
# | | worker 0 | worker 1 | worker 2 |
# | --- | --- | --- | --- |
# | before | 1, 2, 3 | 10, 20, 30 | 100, 200, 300 |
# | after step 0: added | 1, 2, **303** | **11**, 20, 30 | 100, **220**, 300 |
# | after step 1: added | 1, **222**, 303 | 11, 20, **333** | **111**, 220, 300 |
# | after step 2: replaced | **111**, 222, 303 | 11, **222**, 333 | 111, 220, **333** |
# | after step 3: replaced | 111, 222, **333** | **111**, 222, 333 | 111, **222**, 333 |
#
# Follow chunk 0, the first number of each. In step 0 worker 0 sends its 1, and worker 1 adds it to its 10. In step 1
# worker 1 sends the 11, and worker 2 adds it to its 100. Now chunk 0 is complete. Steps 2 and 3 carry it to the others.
#
# In step 0, worker $r$ sends chunk $r$. In each later step it sends the chunk that it has just received. For example,
# worker 1 sends chunk 1, then chunk 0, then chunk 2, then chunk 1. So the number falls by one in each step, and the
# number after 0 is $K-1$. (Python's `-1 % 3` is 2.) All send at the same moment.
#
# - **First half, the *reduce-scatter*:** a worker *adds* what comes in. After $K-1$ steps it holds one complete chunk.
# - **Second half, the *all-gather*:** what comes in *replaces* the old chunk. After $K-1$ more steps all workers hold
#   all complete chunks.
#
# At the end each worker divides by $K$. All this together is a **ring all-reduce** (Patarasuk and Yuan 2009; Sergeev
# and Del Balso 2018). Move the next ring step by step. Then let the workers send a wrong chunk, and see what they end
# with.

# %%
explore("ring")

# %% [markdown]
# Write one step of the first half. You get the chunks of all workers before the step, and return them after it. Each
# worker sends what it had *before* the step.


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
# Now your function runs. Each worker begins with the number 1 in every chunk. So the number in a chunk says how many
# workers it has collected. A black chunk is complete.


# %%
from lessons.cells.plots.by_hand import show_losses, show_ring

show_ring(ring_step, workers)

# %% [markdown]
# Your function sees the chunks of all workers. A real worker does not. It knows only three numbers: its rank, the step
# and the size. From these it has to find out
#
# - which chunk it sends,
# - which chunk comes in,
# - and whether it adds this chunk, or replaces its own by it.
#
# Write this plan for both halves. With three workers, steps 0 and 1 are the first half, and steps 2 and 3 are the
# second. Here is worker 1 of the table above:
#
# | step | it sends chunk | chunk comes in | it |
# | --- | --- | --- | --- |
# | 0 | 1 | 0 | adds |
# | 1 | 0 | 2 | adds |
# | 2 | 2 | 1 | replaces |
# | 3 | 1 | 0 | replaces |
#
# The workers below follow your plan.


# %% exercise="ring_plan"
def ring_plan(rank, step, size):
    ### BEGIN SOLUTION
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
        if add:
            chunks[coming].add_(received)
        else:
            chunks[coming].copy_(received)
    vector /= size


# %% [markdown]
# A gradient has $N$ bytes. How many bytes does each worker *send* in an update, with a server and with a ring? For the
# ring, count the steps of both halves, and the bytes of a chunk. Soon you will measure whether you are right.


# %% exercise="traffic"
def traffic(scheme, workers, gradient_bytes):
    ### BEGIN SOLUTION
    if scheme == "parameter server":
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    return [2 * (workers - 1) * gradient_bytes // workers] * workers
    ### END SOLUTION


# %% [markdown]
# ## Training with both
#
# This is a whole training loop. It makes 16 updates on this worker's shard of CIFAR-10. The batches of all workers
# together are the **global batch**. It has 128 images, so each of $K$ workers takes 128 / $K$. The line `mean(vector)`
# makes the loop distributed. It replaces the worker's own gradient by the mean of all. First, one worker trains here in
# the notebook. It has nothing to average.


# %%
def train_by_hand(mean, rank, size, train, seed):
    torch.manual_seed(seed)  # the same weights on all workers
    net, losses = BootcampResNet(), []
    for part in shard(shuffle(len(train), seed, 0), rank, size).split(128 // size)[:16]:
        loss, vector = gradient(net, *train.batch(part))
        mean(vector)
        weights = parameters_to_vector(net.parameters()).detach() - 0.1 * vector
        vector_to_parameters(weights, net.parameters())
        loss = loss.reshape(1)
        mean(loss)
        losses.append(loss.item())
    return {"losses": losses, "weights": weights}


assert 128 % workers == 0, f"a global batch of 128 does not divide among {workers} workers: take 2, 4 or 8"
one = train_by_hand(lambda vector: None, 0, 1, train, seed)

# %% [markdown]
# Now the same loop runs on real processes, with the server and with the ring. The operating system counts the bytes
# that each process receives.


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


torchrun(both_ways, workers, seed, images, needs=[gradient, server_mean, ring_plan, ring_mean, train_by_hand])

# %% [markdown]
# Compare with your formula. In both ways, each worker receives as many bytes as it sends. The system may count a little
# more, because the loss is averaged too, and each message carries some extra bytes.

# %%
gradient_bytes = sum(parameter.nbytes for parameter in net.parameters())
gradient_bytes -= gradient_bytes % workers  # so that it divides
print(f"a gradient has {gradient_bytes / 1e6:.2f} MB")
for scheme in ("parameter server", "ring"):
    sent = ", ".join(f"{count / 1e6:.2f}" for count in traffic(scheme, workers, gradient_bytes))
    print(f"{scheme}: by the formula the workers send {sent} MB an update")

# %% [markdown]
# Did both ways compute the same? All three runs use the same 128 images in each update. How should the three curves
# lie? Guess, then draw them.

# %%
server, ring = (torch.load(f"{way.__name__}.pt") for way in (server_mean, ring_mean))
apart = max(((other["weights"] - one["weights"]).norm() / one["weights"].norm()).item() for other in (server, ring))
show_losses({"one process": one["losses"], "server": server["losses"], "ring": ring["losses"]}, apart)
assert apart < 1e-3, "the means differ by more than rounding: look at ring_plan first"

# %% [markdown]
# The server sends $(K-1)N$ bytes in an update. In a ring each worker sends $2(K-1)N/K$, which is less than $2N$. And
# both compute the same mean, up to rounding. (A sum of rounded numbers depends on the order in which one adds. So two
# right ways differ in their last digits. But no two *workers* differ: in a ring, one worker completes a chunk, and all
# others get a copy.)
#
# ## And how long does it take?
#
# Each message costs a fixed time, even an empty one. This is the **latency** $\alpha$. Each byte costs a further time
# $\beta$, and $1/\beta$ is the **bandwidth**. So a message of $m$ bytes takes about $\alpha + \beta m$ seconds.
#
# In a ring each worker sends $2(K-1)$ messages of $N/K$ bytes, one after the other. A server receives $K-1$ messages of
# $N$ bytes, and sends as many. Take 2 MB of gradients, a latency of 0.1 ms, and a link of 1 Gbit/s. **Guess first:**
# with 256 workers in a ring, what takes more time, the latencies or the bytes?

# %%
alpha, beta = 1e-4, 8 / 1e9  # seconds for a message, and for a byte
total = 2e6  # bytes of a gradient
print("workers   ring: latencies + bytes           one server")
for count in (2, 4, 16, 64, 256):
    messages = 2 * (count - 1)
    latencies, sending = messages * alpha, messages * beta * total / count
    server = messages * (alpha + beta * total)
    in_ring = f"{1000 * latencies:4.1f} + {1000 * sending:4.1f} = {1000 * (latencies + sending):4.1f} ms"
    print(f"{count:7}          {in_ring:27} {1000 * server:7.1f} ms")

# %% [markdown]
# With few workers, the bytes take more time. In a ring they never take more than $2 \beta N$, here 32 ms. So with 256
# workers most of the time is latency: 51 ms. One server is then about a hundred times slower than the ring. These times
# are computed, and not measured. Here all workers share one machine, so no link of theirs is slow. The lab of lesson 09
# compares a model with this formula with real clusters.
#
# ## Is your own program right?
#
# Several workers should compute what one worker computes. So compare them:
#
# 1. Switch off all that is random, such as distortions, and leave batch normalisation out.
# 2. Start with equal weights, and give the workers together the images of the one worker's batch.
# 3. Compare the first tens of updates. They must agree, apart from rounding. (Later, rounding alone drives the runs
#    apart.) If they do not agree, the program has a mistake.
# 4. If they agree, put back batch normalisation alone, and then the larger batch alone. So you see which one costs
#    accuracy.
#
# <details><summary>The workers average rightly, but one begins with another seed. Which step finds it?</summary>
#
# The third. Already the loss of the first update differs. So compare the weights before it (notebook 04).
#
# </details>
#
# ## Summary
#
# - Data parallelism: each worker computes a gradient on its own images, and all apply the mean of all gradients.
# - The mean of the gradients is the gradient of the global batch, apart from rounding. Two things can break this: a
#   plain mean over unequal counts, and batch normalisation with each worker's own statistics.
# - The link of a single server carries $(K-1)N$ bytes each way. In a ring a link carries less than $2N$ bytes, however
#   many workers there are.
#
# The lines to keep:
#
# ```python
# total = sum(count * gradient for count, gradient in zip(counts, gradients))
# mean = total / sum(counts)  # also over unequal shards
# sent = 2 * (workers - 1) / workers * gradient_bytes  # by each worker of a ring
# ```
#
# **The case of notebook 00:** four workers trained a worse network than one worker did. A right mean loses nothing, so
# averaging itself is not the cause. The other suspects remain. You have met two of them here: batch normalisation with
# each worker's own statistics, and a global batch that is four times as large.
#
# Horovod, and PyTorch's own `DistributedDataParallel`, do what you have done by hand. They leave the exchange to a
# library such as Gloo. It often uses a ring. They also exchange while the backward pass still computes. Horovod comes
# next.
#
# The lab of this lesson is notebook 13. For example, it asks whose loss a program prints.
#
# ## Questions
#
# <details><summary>Four workers in a ring, and one has a link half as fast as the others. How fast is the ring?</summary>
#
# It is half as fast. Every chunk passes every link, and all workers wait for each other at each step.
#
# </details>
#
#
# <details><summary>All workers print the same training loss to the last digit, at every update. Good news?</summary>
#
# Only if the loss was averaged before printing. Different images have different losses. So if nobody averaged, equal
# losses mean equal images: $K$ workers do the work of one. Print the numbers of the images of a batch on each worker.
#
# </details>
