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
# **After this notebook you will be able to** average gradients correctly, also over unequal shards; average gradients
# on real processes in two ways, by a parameter server and by a ring whose steps you have planned; and count the bytes
# that each worker sends.
#
# **Time:** about {{minutes_03}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 01 (the noise
# of a gradient) and 02 (the training loop of one worker).
#
# Horovod does all of this for you from notebook 04 on. If you have done it once by hand, you know what its few lines
# decide.

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
# In the next experiment each worker has one core of this machine for itself. Think of the core as its GPU. First one
# worker trains alone on one core. Then two workers train on two cores, and exchange their gradients in each update.
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
# In the saved experiment, two workers manage {{cores_weak}} images while one manages 100, if each keeps a batch of 64
# images. This is called **weak scaling**. They gain less if they share one batch of 64, so that each has only 32. This
# is called **strong scaling**: the exchange takes as long as before, and there is less to compute between two
# exchanges. The dashed line is a prediction for four and eight workers, each with a core of its own.
#
# In most other experiments of this course, one worker already uses all cores, because that is how you would train on
# this machine. Two workers then share these cores, so they cannot be faster. Such times say nothing about workers that
# have a GPU each.
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
# All start equal, and all apply the same change. So they stay equal, and nobody has to send weights during the
# training. This is called **data parallelism**. Step 3 is the only one that makes the training distributed, and most of
# this notebook is about it.
#
# ## What should come out?
#
# There are $K$ workers. Worker $r$ has a batch of $n_r$ images, and their mean gradient is $g_r$. What is the mean
# gradient of the images of all workers together? Each $g_r$ is the mean of $n_r$ gradients, so $n_r\, g_r$ is their
# sum. We add up these sums, and divide by the number of all images:
#
# $$g = \frac{\sum_r n_r\, g_r}{\sum_r n_r}.$$
#
# This is right under two conditions:
#
# 1. **The counts are used as weights, or they are all equal.** If they are equal, $g$ is the plain mean of the $g_r$.
# 2. **The gradient of an image does not depend on how the images are divided among the workers.**
#
# Then **$K$ workers with $n$ images each compute what one worker computes with the same $Kn$ images.** The two results
# differ only by rounding.
#
# We begin with the first condition. Write the mean that is right for any counts.


# %% exercise="average_gradients"
def average_gradients(gradients, counts):
    ### BEGIN SOLUTION
    total = sum(counts)
    columns = zip(*gradients, strict=True)
    return [sum(n * value for n, value in zip(counts, column, strict=True)) / total for column in columns]
    ### END SOLUTION


# %% [markdown]
# Now we try it with real images. Three shards have 96, 24 and 8 images. We join their three gradients in two ways: by
# the mean of the three means, and by your weighted mean. Then we compare both with the gradient of all 128 images in
# one piece. (The first 1,000 numbers of each gradient are enough for that.) The network is a small ResNet without batch
# normalisation. (It comes from a public course, the "bootcamp" in its name.)


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
weighted = torch.tensor(average_gradients(mine[:, :1000].tolist(), counts))
for name, found in (("mean of means", mine.mean(0)[:1000]), ("weighted", weighted)):
    away = (found - together[:1000]).norm() / together[:1000].norm()
    print(f"{name}: {away:.1e} away, relative to the gradient's length")

# %% [markdown]
# A distance of 1 would be as long as the gradient itself. So the mean of means is far from right. Your weighted mean is
# right up to rounding.
#
# ### On real workers: is it exact?
#
# In the next run, real workers average their gradients by Horovod, the library of lesson 04. They compute in double
# precision, so that rounding cannot hide a mistake. One process computes the gradient of all their images. There are
# three networks:
#
# - the small ResNet without normalisation,
# - the same network with batch normalisation, a layer that you find in most networks,
# - the same network with batch normalisation whose statistics are averaged over the workers, too.
#
# Batch normalisation takes the numbers that a layer computes for all images of a batch. It subtracts their mean, and
# divides by their standard deviation. So each image changes the result of the others.
#
# **What to look at:** a double has about 16 digits, so rounding gives a difference of about $10^{-15}$. Which of the
# three networks lie there? Guess before you run it.

# %%
runs = live("C01", device=device, seed=seed)

# %%
result = saved("C01")

# %% [markdown]
# With batch normalisation of its own on each worker, the second condition does not hold: each image changes the
# gradients of the other images of its worker, and no others. So the sentence "training on several GPUs equals training
# with a larger batch" is true without batch normalisation. It is false if each worker normalises with its own images
# only. It is true again if the statistics are averaged over the workers, as in the third network. Notebook 06 asks
# whether this matters for the accuracy.
#
# ### Shards that do not divide evenly
#
# 50,000 images do not divide among 3 workers: two are left over. And the last batch of an epoch is often short. What
# happens if one worker has fewer images, and we take the plain mean all the same?
#
# In this experiment four workers share a batch. Three of them have 16 images each. The last one has fewer. The images
# are *shuffled*, or they are *sorted*: they lie in the order of their classes. The left panel shows the error of one
# batch. For the right panel, we first average the gradients of several batches, and then measure the error. Random
# errors cancel each other. An error that always points in the same direction, a *bias*, stays.

# %%
result = saved("C02")

# %% [markdown]
# The plain mean gives the few images of the small shard too much weight. If the data are shuffled, these are other
# images each time, so this is only more noise. If a batch is in the order of its classes, the last worker gets the last
# classes each time. Then these classes pull every update in their direction.
#
# There are three cures. Weigh by the counts, as you did. Or give every worker equally many images, and leave the rest
# for another epoch: `cifar.data.shard` does this. Or fill up the short shard with images that are used twice.
#
# A test of the trained network needs no equal shards. The workers of this course add up their *counts of correct
# answers*, and divide once by the number of all images.
#
# ## Several processes, from a notebook
#
# Each worker is a process, a running program with memory of its own. A notebook is a single process. So we write the
# program of a worker to a file, and launch the file several times. `torchrun` does this. It is PyTorch's launcher. It
# tells each process its rank, how many workers there are (the *size*), and an address where they meet. The
# library **Gloo** carries their messages.
#
# In these notebooks you can write the program as a function. `torchrun(function, workers)` writes it to a file and
# launches it.
#
# <details><summary>Why is it not enough to call the function several times, or to copy the notebook's process?</summary>
#
# If you call it several times in the notebook, there is still one process. The system call `fork()` does copy a
# process: all its memory, but only the one thread that calls it. A notebook has more threads, for instance for messages
# from your browser and for PyTorch's arithmetic. If the copy needs something that another thread was just using, it
# waits for ever, because that thread was not copied. The state of a GPU cannot be copied at all. And a new Python
# process cannot import a function that exists only in a cell. `lessons/cells/torchrun.py` shows how we write it to a
# file.
#
# </details>


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
# The lines come in any order. Each worker has a process id of its own, and shares no memory with the rest.
#
# The **rank** of a worker is its number, from 0 on. This program and the next one use three calls:
#
# - `isend` begins to send, and the program goes on. `sending.wait()` then waits until it is sent.
# - `recv` waits until a message has come.
# - `send`, which the next program uses, waits until the message is taken.
#
# Why not `send` here? All workers would send first, and each would wait for a neighbour that is itself still sending.
# Nobody could go on. This is a **deadlock**. (A test with small messages may not show it, because they fit into a
# buffer of the system.) In this course a worker gives up after a minute, and the error says where.
#
# ## A parameter server
#
# One process is the **parameter server**, or server for short. The workers send it their gradients. It averages them,
# and sends the mean back. Here worker 0 does this beside its own work. The workers use `send`, and this is safe: while
# they send, the server receives.
#
# This is the simplest case: one server, and all workers wait for it. The first large clusters for deep learning had
# many servers, and each held a part of the weights (Dean and others 2012; Li and others 2014). Dean's workers did not
# wait for each other either. The lab of this lesson (notebook 13) comes back to both ideas.


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
# Let a gradient have $N$ bytes, and count what the link of the server carries. $K-1$ workers send $N$ bytes each, so
# $(K-1)N$ bytes come in, and as many go out. The link of any other worker carries only $N$ bytes each way. So the
# server is the bottleneck, and every new worker makes it worse.
#
# ## A ring
#
# ![](drawings/server_and_ring.svg)
#
# All links shall work at the same time. So each worker cuts its vector into $K$ chunks. In each step every worker sends
# *one chunk* to its right-hand neighbour, and gets one from its left-hand neighbour.
#
# In step 0, worker $r$ sends chunk $r$. In each later step it sends the chunk that it got in the step before. All
# workers send at the same moment. So what a worker sends is what it had before the step.
#
# - In the first half, the *reduce-scatter*, the worker *adds* what comes in to its own chunk. So a chunk collects the
#   numbers of each worker that it passes. With four workers, chunk 0 goes from worker 0 to workers 1, 2 and 3, and is
#   complete on worker 3. After $K-1$ steps each worker holds one chunk that is complete.
# - In the second half, the *all-gather*, the complete chunks go round once more. What comes in *replaces* what was
#   there. After $K-1$ more steps all workers hold all complete chunks.
#
# Here are three workers and three chunks of one number each. A bold number has just changed.
#
# | | worker 0 | worker 1 | worker 2 |
# | --- | --- | --- | --- |
# | before | 1, 2, 3 | 10, 20, 30 | 100, 200, 300 |
# | after step 0: added | 1, 2, **303** | **11**, 20, 30 | 100, **220**, 300 |
# | after step 1: added | 1, **222**, 303 | 11, 20, **333** | **111**, 220, 300 |
# | after step 2: replaced | **111**, 222, 303 | 11, **222**, 333 | 111, 220, **333** |
# | after step 3: replaced | 111, 222, **333** | **111**, 222, 333 | 111, **222**, 333 |
#
# In step 0 worker 0 sends its chunk 0, a 1. Worker 1 adds it to its own 10. In step 1 worker 1 sends on this 11, and
# worker 2 adds it to its 100. Now chunk 0 is complete, on worker 2. Steps 2 and 3 carry the complete chunks around.
#
# The whole is a **ring all-reduce** (Patarasuk and Yuan 2009; Sergeev and Del Balso 2018). The next cell shows a ring
# that you can move step by step. Then let the workers send a wrong chunk, and see what they end with.

# %%
explore("ring")

# %% [markdown]
# Write one step of the first half. Your function sees all workers from above. It gets the chunks of all workers before
# the step, and returns the chunks of all workers after it.


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
from lessons.cells.by_hand import show_losses, show_ring

show_ring(ring_step, workers)

# %% [markdown]
# Real workers have no view from above. Each process sees only its own chunks. In each step it must know which chunk it
# sends, which chunk comes in, and whether it adds this chunk or replaces its own. Write this plan for both halves. The
# workers below follow it.


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
# How many bytes does each worker *send* in an update, with a server and with a ring? You have the number for the
# server. For the ring, count the steps of both halves, and the bytes of a chunk. Write both as a function. Below you
# measure whether it is right.


# %% exercise="traffic"
def traffic(scheme, workers, gradient_bytes):
    ### BEGIN SOLUTION
    if scheme == "parameter server":
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    return [2 * (workers - 1) * gradient_bytes // workers] * workers
    ### END SOLUTION


# %% [markdown]
# ## How long does an exchange take?
#
# Each message costs a fixed time, also an empty one. This is the **latency** $\alpha$. Each byte costs a further time
# $\beta$, and $1/\beta$ is the **bandwidth**. So a message of $m$ bytes takes about $\alpha + \beta m$ seconds.
#
# Count the messages of an exchange. In a ring each worker sends $2(K-1)$ messages of $N/K$ bytes, one after the other.
# A single server receives $K-1$ messages of $N$ bytes, and sends as many. Take 2 MB of gradients, a latency of 0.1 ms,
# and a link of 1 Gbit/s:

# %%
alpha, beta = 1e-4, 8 / 1e9  # seconds for a message, and for a byte
total = 2e6  # bytes of a gradient
for count in (2, 4, 16, 64, 256):
    messages = 2 * (count - 1)
    in_ring = messages * (alpha + beta * total / count)
    with_server = messages * (alpha + beta * total)
    print(f"{count:3} workers: {1000 * in_ring:5.1f} ms in a ring, {1000 * with_server:7.1f} ms with one server")

# %% [markdown]
# In a ring of few workers, most of the time goes into the bytes. The bytes take at most $2 \beta N$, which is 32 ms
# here. With 256 workers, the latencies take 51 ms and the bytes 32 ms, because there are so many messages. One server
# is then about a hundred times slower than the ring. Lesson 09 fits this model to several **hosts**, which are
# computers in one network.
#
# ## Training with both
#
# This is a whole training loop. It takes this worker's shard of one shuffle of CIFAR-10, and makes 16 updates of plain
# SGD. The global batch has 128 images, so each of $K$ workers has 128 / $K$. The line `mean(vector)` makes the loop
# distributed. It writes the mean of all workers into `vector`, in place of the worker's own gradient. In a single
# process this mean has nothing to do, so we can run that process here, in the notebook.


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
# Compare the bytes with your formula. A worker receives in the ring as much as it sends. With a server, worker 0
# receives one gradient from each of the others. The system may count a little more than your formula, because the
# workers also exchange the loss, and each message has a header.

# %%
gradient_bytes = sum(parameter.nbytes for parameter in net.parameters())
gradient_bytes -= gradient_bytes % workers  # so that it divides
print(f"a gradient has {gradient_bytes / 1e6:.2f} MB")
for scheme in ("parameter server", "ring"):
    sent = ", ".join(f"{count / 1e6:.2f}" for count in traffic(scheme, workers, gradient_bytes))
    print(f"{scheme}: by the formula the workers send {sent} MB an update")

# %% [markdown]
# <details><summary>Can servers carry as little as a ring?</summary>
#
# A single server is not the only way to have servers. We can also cut the weights into $K$ parts of $N/K$ bytes, and
# make each worker the server of one part. Then each link carries two things. For its own part, the worker receives
# $(K-1)N/K$ bytes of gradients, and sends as many bytes of means. For the other $K-1$ parts, it sends $(K-1)N/K$ bytes,
# and gets as many back. Together these are $2(K-1)N/K$ each way, as in the ring.
#
# </details>
#
# And have the two ways computed the same? In each update, the shards' batches together are the 128 images of the single
# process. So the three runs should follow one line.

# %%
server, ring = (torch.load(f"{way.__name__}.pt") for way in (server_mean, ring_mean))
apart = max(((other["weights"] - one["weights"]).norm() / one["weights"].norm()).item() for other in (server, ring))
show_losses({"one process": one["losses"], "server": server["losses"], "ring": ring["losses"]}, apart)
assert apart < 1e-3, "the means differ by more than rounding: look at ring_plan first"

# %% [markdown]
# ## Whose loss does the program print?
#
# After the exchange all workers have the same *gradient*. But each has computed the *loss* of its own images.
# `print(loss)` on rank 0 shows the loss of one worker's images. This is a right estimate, but a noisy one. It jumps up
# and down around the loss of all workers' images. The mean over $K$ workers should jump $\sqrt{K}$ times less. Look at
# the printed line, and at whether the scatter follows $1/\sqrt{K}$. (A loss is in nats, the unit of notebook 02.)

# %%
result = saved("C08")

# %% [markdown]
# Nothing is wrong with the training if you print the loss of rank 0. Your curve is only noisier than it need be, and
# two runs that are compared by it look more different than they are. To print a less noisy loss, average it over the
# workers first. `train_by_hand` does this at each update. `cifar_base.py` does it once for each epoch, by
# `hvd.allreduce`.
#
# ## Summary
#
# - Data parallelism: each worker computes a gradient on its own images, and all apply the mean of all gradients.
# - The mean of $K$ gradients is the gradient of the global batch, apart from rounding. This holds if the counts are
#   equal or used as weights, and if no worker has batch normalisation with statistics of its own.
# - The link of a single parameter server carries bytes in proportion to $K$. In a ring, or with as many servers as
#   workers, a link carries less than $2N$ bytes each way, however many workers there are.
# - The loss that one worker prints is the loss of its own images.
#
# The lines to keep:
#
# ```python
# total = sum(count * gradient for count, gradient in zip(counts, gradients))
# mean = total / sum(counts)  # also over unequal shards
# sent = 2 * (workers - 1) / workers * gradient_bytes  # by each worker of a ring
# ```
#
# **The case of notebook 00:** four workers trained a network that ended worse than the one of a single worker. If the
# mean is right, averaging loses nothing. So averaging itself is not what made the network worse. But other suspects
# remain. Two are from this notebook: a plain mean over unequal counts, and batch normalisation with statistics of its
# own on each worker. And four workers with the same batch each have a global batch that is four times as large.
#
# The lab of this lesson is notebook 13. There you ask who should compute, whether everybody must wait, how images get
# to the workers, and what the loss must be divided by. There you also cut a network in two.
#
# ## Questions
#
# <details><summary>Four workers in a ring, and one has a link half as fast as the others. How fast is the ring?</summary>
#
# It is half as fast. Every chunk passes every link, and all workers wait for each other at each step. With a parameter
# server a worker's slow link would delay the gradient of this worker only. But the update waits for this gradient as
# well.
#
# </details>
#
#
# <details><summary>All workers print the same training loss to the last digit, at every update. Good news?</summary>
#
# It is good news only if the loss was averaged before printing. The losses of different images differ. If they are
# equal, every worker has the same images, and $K$ workers do the work of one. Print the numbers of the images of a
# batch on each worker.
#
# </details>
