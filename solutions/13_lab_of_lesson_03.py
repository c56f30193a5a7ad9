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
# # 13 Lab of lesson 03: who computes, who waits, and who feeds the workers
#
# **After this notebook you will be able to** say which link is busiest in four ways to train, test by one short run
# whether your averaging is right, feed workers without sending images, divide a loss by the right number, and tell
# apart data and model parallelism, and synchronous and asynchronous training.
#
# **Time:** {{minutes_13}} minutes, besides the waiting for its runs. **Builds on:** 03.
#
# This is a lab. Its experiments belong to lesson 03, and no later lesson needs them. Take those that you want to see.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector

from cifar.data import load, normalise, shard, shuffle
from cifar.model import BootcampResNet
from lessons import axes, live, saved, show, torchrun

# %% [markdown]
# ## The batch: keep it, or divide it?
#
# You have a script for one GPU, with a batch of 128. What do you write for two GPUs? With 128, the **global batch** is
# 256. You train something else: an epoch has half as many updates (notebook 05). With 64, the global batch is as
# before. By lesson 03, this should be *the same run*. Sources S0 and S1 say so, and add that it has a price.
# **Guess first:** what is the price?
#
# **What to look at:** on the left, do the lines coincide? On the right, how much does a worker achieve?

# %%
runs = live("C05", device=device, seed=seed)

# %%
result = saved("C05")

# %% [markdown]
# Is your accuracy on several GPUs lower than before? Then this is the first test:
#
# 1. Divide the per-worker batch by $K$.
# 2. Switch off what each worker draws for itself (augmentation, dropout).
# 3. Take batch normalisation out, or synchronise it.
# 4. Compare the first tens of updates with one worker's.
#
# Do these updates differ by far more than another order of summation makes? (The verdict gives both numbers.) Then
# there is a bug. If they agree, your averaging is right. Then look at batch size and learning rate. Later, rounding
# alone drives two right runs apart.
#
# The price has two parts. There are more exchanges for the same images. And smaller batches use a processor less well,
# because each update has a fixed cost (notebook 02). On the right, the lines with exchange show both costs. The lines
# without exchange show only the second, and on this machine it is too small to be seen.
#
# ## Who should compute, and over which links?
#
# Begin with the server and the ring of lesson 03. Choose the number of workers and the speed of the link:

# %%
from lessons import explore

explore("server")

# %% [markdown]
# <details><summary>Can servers carry as little as a ring?</summary>
#
# Yes. Cut the weights into $K$ parts of $N/K$ bytes, and make each worker the server of one part. For its own part, a
# worker receives $(K-1)N/K$ bytes of gradients, and sends as many bytes of means. For the other $K-1$ parts, it sends
# $(K-1)N/K$ bytes, and gets as many back. Together these are $2(K-1)N/K$ bytes each way, as in the ring.
#
# </details>
#
# A parameter server could do more than average. The workers could run the forward pass, and the server could compute
# all gradients. Source S3 objects to this. We try four ways on real processes:
#
# - The server *computes* all gradients. The workers send it their activations.
# - The server *averages* the gradients.
# - All workers send their gradient to all others.
# - The workers form a ring.
#
# **Guess first:** which way uses most bytes at the busiest worker? Which takes most time on *this* machine?

# %%
runs = live("C21", device=device, seed=seed)

# %%
result = saved("C21")

# %% [markdown]
# Where the server computes, activations travel instead of gradients. They grow with the batch, and gradients do not.
# And one process does everybody's back-propagation, while the others are idle. In a convolutional network this is the
# worst of the four. But a wide fully connected layer has many weights and few activations. Sending its activations can
# be cheaper (Krizhevsky 2014 does so).
#
# How do we count? The server's $2(K-1)N$ counts both directions. The often quoted $2N(K-1)/K$ of the ring counts only
# one. In both directions, the ring has $4N(K-1)/K$. With two workers this is no advantage. With more workers, the
# server's share grows with $K$, and the ring's stays below $4N$.
#
# The time is another matter. On paper, the ring's link is the least busy. But the workers of one machine have no links
# of their own. All messages go through the same memory, and all workers share the cores. With more workers than cores,
# they take turns to compute. This alone makes an update longer.
#
# All workers together send $2(K-1)N$ bytes, by server or by ring. Where all send to all, it is $K(K-1)N$, or $K/2$
# times as much. The right panel shows little of that. The ring pays off where each worker has its own network card. The
# formula tells you what the busiest link carries. Only a clock tells you whether you wait for it.
#
# ## Feeding the workers
#
# **Is every GPU seeing the same data?** Ask this of any distributed program, because the wrong answer raises no error.
# The question has two halves: what is *sent*, and what is *used*.
#
# Say one process reads the images. It can send the whole global batch to everybody, and each takes its part. This is
# simple to write. Or it sends each worker only its part. **Guess first:** how much does this save, in bytes and in
# time?

# %%
runs = live("C22", device=device, seed=seed)

# %%
result = saved("C22")

# %% [markdown]
# The bytes follow the formula to the last digit. In the verdict, compare the ratio of the times with the factor in the
# bytes. Cutting a batch into parts also costs something, and inside one machine bytes are cheap. They are not cheap
# over a network, or a bus that also carries gradients.
#
# The scripts of this course send no images at all. Each worker reads the data set itself, and computes *which* images
# are its own. All workers need the same seed:

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
# Now to what is used. Suppose each worker shuffles for itself, or draws its images at random. **Guess:** how much of
# the data set does an epoch still cover?
#
# If $n$ images are drawn from $n$ with replacement, an image is missed with probability $(1 - 1/n)^n$, about $1/e$. If
# each of $K$ workers takes a part of its own shuffle, the probability is $(1 - 1/K)^K$. Below, real workers go through
# an epoch, and report which images they fetched.

# %%
runs = live("C25", device=device, seed=seed)

# %%
result = saved("C25")

# %% [markdown]
# One shuffle, divided, is free. It takes a common seed, and each worker's `rank`. Does it raise the *test accuracy*?
# Compared with images drawn at random, no difference was seen. Over many epochs, even careless draws see nearly all
# images. But then an epoch is no longer one pass over the data.
#
# ## Whose loss does the program print?
#
# After the exchange all workers have the same *gradient*. But each has computed the *loss* of its own images.
# `print(loss)` on rank 0 shows the loss of one worker's images. It jumps up and down around the loss of all images. The
# mean over $K$ workers jumps less. **Guess first:** how much less, with four workers? (A loss is in nats, the unit of
# notebook 02.)

# %%
result = saved("C08")

# %% [markdown]
# Theory says $\sqrt{K}$ times less, so half as much with four workers. Does the figure agree? The training is fine if
# you print the loss of rank 0. Only the curve is noisier, and two runs look more different than they are. For a
# smoother curve, average the loss over the workers first, as `train_by_hand` of lesson 03 does.
#
# ## Sum or mean, and divided by what?
#
# An all-reduce gives sums. Horovod divides by $K$ for you, and PyTorch's `all_reduce` does not. Say each of $K$ workers
# has $n$ images, and their gradients are **summed**. The global batch is $Kn$, so each loss must be divided by $Kn$.
# With $n$, the sum is $K$ times too large. (Or divide by $n$, and average the gradients.)
#
# Could you divide the rate by $K$ instead? For plain SGD this works if *everything* is $K$ times too large. Weight
# decay $\frac{\lambda}{2}\|w\|^2$ need not be. It may be **inside** each worker's loss, and then it is summed too. Or
# it may be **outside**: added once, after the sum, as an optimizer's `weight_decay` is. In these four cases, $\nabla L$
# is the mean gradient of all $Kn$ images:
#
# | divided by | decay inside: the sum is | decay outside: the sum is |
# | --- | --- | --- |
# | $n$ | $K\,\nabla L + K\,\lambda w$ | $K\,\nabla L + \lambda w$ |
# | $Kn$ | $\nabla L + K\,\lambda w$ | $\nabla L + \lambda w$ |
#
# Source S3 says: divide by $Kn$, not $n$, or the decay is $K$ times too strong. (Goyal and others 2017, section 3, warn
# of the same mistake.) **Guess first:** in which cells of the table is the decay too strong? The bars are fitted to the
# summed gradients of real workers. On the right all four cases train, beside one worker with all images.

# %%
runs = live("C23", device=device, seed=seed)

# %%
result = saved("C23")

# %% [markdown]
# So the advice is right, but its reason is not quite right. Only the last cell is the training run you meant. A decay
# that is $K$ times too strong comes from *where it is added*: inside each loss. Dividing by $n$ makes the **data** term
# $K$ times too strong. With the decay outside, and the rate divided by $K$ to compensate, the decay ends up $K$ times
# too *weak*.
#
# With everything $K$ times too strong, the run has a $K$ times larger rate. As long as that rate is stable, it heads
# for the same weights faster. It also scatters more about them (notebook 01). Where one worker's line still rises at
# the end of the figure, it has not arrived yet. So the gap between the two lines is not another goal.
#
# Adam divides by the gradient's own size, so a factor common to all terms drops out. A sum then trains like a mean.
# This hides the mistake until somebody switches to SGD.
#
# ## Must everyone wait?
#
# All training so far was **synchronous**: nobody goes on before all gradients are there. *Asynchronous* workers do not
# wait. These are the designs:
#
# | design | who has the weights | who waits | what it costs |
# | --- | --- | --- | --- |
# | synchronous, one parameter server | the server, and workers get a copy each update | all, for the slowest and for the server's link | the bottleneck at the server, unless many servers share the weights |
# | synchronous, all-reduce | everyone, always equal | all, for the slowest | nobody may fail |
# | asynchronous, parameter server | the server, and workers' copies are out of date | nobody | gradients are *stale*: computed at weights that are gone |
# | elastic averaging (EASGD) | each its own, tied to a centre by a spring | nobody, or now and then | workers explore apart, with one more constant, $\rho$ |
#
# Asynchronous training was the answer to slow and failing machines in large clusters (Dean and others 2012). Later,
# synchronous runs had a few spare workers, so as not to wait for the slowest. They reached better accuracy in the same
# time (Chen and others 2016, arXiv:1604.00981). All-reduce libraries made them simple. Horovod is synchronous.
#
# The experiment delays gradients by a known number of updates, the *staleness*. It also lets workers go their own ways
# on springs of different stiffness (Zhang and others 2015).
#
# **What to look at:** on the left, does the loss rise with staleness at one and the same rate? On the right, does a
# stiffer spring keep the workers closer together?

# %%
runs = live("C10", device=device, seed=seed)

# %%
result = saved("C10")

# %% [markdown]
# Why does staleness hurt? A gradient says where downhill is *at the weights where it was computed*. Apply it eight
# updates later, and you correct an error that has been corrected already. You overshoot, as with too high a rate. In
# theory lower rates forgive more staleness, but here all runs have one rate.
#
# The right panel shows only that a stiffer spring keeps the workers closer together. The caption says what this does to
# the centre. It starts at the first weights, and moves only as far as it is pulled. So a weak spring leaves it behind.
# These few updates cannot tell whether a stiffness in between is best.
#
# ## Cut the network, not the data
#
# ![](drawings/pipeline.svg)
#
# **Model parallelism** is the other way. Each process, or *stage*, holds a *part of the network*, and all images pass
# through all stages. You need it when the network does not fit on one device. In the forward pass, stage 0 sends its
# activations to stage 1. In the backward pass, stage 1 sends back the gradient of the loss with respect to them. From
# there, `output.backward(received)` goes on. Nobody exchanges weights.


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
# In the program around these functions, both processes build the same network, and each keeps its part. Stage 0 needs
# the pixels, and stage 1 needs the labels.


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


torchrun(two_stages, 2, seed, images, needs=[first_stage, last_stage])

# %% [markdown]
# We check it with the same six updates in one process:

# %%
torch.manual_seed(seed)
train, _ = load(limit=images)
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
# The weights are the same, so the program is right. Is it fast? Each process noted when it was computing. Guess how
# long a stage waits, then look at the gaps.

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
# While one stage computes, the other waits. So two processes are no faster than one. They only share the *memory*.
# Pipelines fill the gaps. They cut the batch into micro-batches, and stage 0 begins with the second one while stage 1
# has the first (Huang and others 2018, GPipe).
#
# Data parallelism sends gradients: as many as there are *weights*, whatever the batch. Model parallelism sends
# activations at the cut, and their gradients: as many as *images times width*. (The width is the number of activations
# of one image.) **Guess:** at how many images do both send the same number?

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
# | limited by | the network must fit on one device, unless its state is sharded (notebook 10) | stages wait for each other |
# | result | that of a larger batch | exactly that of one process |
#
# Large models use both: each of several groups of devices holds one copy of the network.
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
# The first column is a parameter server on GPU 0, inside one process. PyTorch's own documentation recommends the second
# instead. The second and third are your ring with better engineering. They gather gradients into larger messages, and
# send them while back-propagation goes on (notebook 04). Both average. Notebook 10 runs the same training in both, and
# compares their weights.

# %% [markdown]
# ## Summary
#
# - Where a server computes all gradients, activations travel, and they grow with the batch.
# - The same global batch on more workers is the same run. This is the first test of a program.
# - Divide one shuffle among the workers. Nothing is sent, and each image is used once.
# - With summed gradients, only $Kn$ and the decay outside give the run you meant.
# - A late gradient overshoots. A stiffer spring keeps workers closer together.
# - Model parallelism shares memory. It saves no time until a pipeline fills the gaps.
#
# ## Questions
#
# <details><summary>Your program divides the loss by the per-worker batch, sums gradients, uses Adam with
# <code>weight_decay</code> in the loss of each worker, and trains well. You switch to SGD and it diverges. Why?</summary>
#
# Gradients are $K$ times too large, and so is the decay. Adam divides that factor out. For SGD it is a $K$ times higher
# rate. Use means: divide by $Kn$, or let the all-reduce average.
#
# </details>
