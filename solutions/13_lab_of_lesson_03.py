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
# data, model, synchronous and asynchronous parallelism apart.
#
# **Time:** {{minutes_13}} minutes, besides the waiting for its runs. **Builds on:** 03.
#
# This is a lab: experiments that belong to lesson 03, and that no later lesson needs. Take those that you want to see.

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
#
# ## Who should compute, and over which links?
#
# Begin with the server and the ring of lesson 03. Choose how many workers there are, and how fast the link is:

# %%
from lessons import explore

explore("server")

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
#
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
# An all-reduce gives sums. Horovod divides by $K$ for you, PyTorch's `all_reduce` does not, and the loss has been
# divided by something before. Say each of $K$ workers has $n$ images, and their gradients are **summed**. The global
# batch is $Kn$. Then each loss must be divided by $Kn$. With $n$, the sum is $K$ times too large. (Summing losses
# divided by $Kn$, and averaging losses divided by $n$, is the same thing.)
#
# "Never mind, I divide the rate by $K$." That works for plain SGD if *everything* is $K$ times too large. Weight decay
# $\frac{\lambda}{2}\|w\|^2$ need not be. It may be **inside** each worker's loss, and then is summed too; or
# **outside**: added once, after the sum, which is what an optimizer's `weight_decay` does. Four cases, with $\nabla L$
# the mean over all $Kn$ images:
#
# | divided by | decay inside: the sum is | decay outside: the sum is |
# | --- | --- | --- |
# | $n$ | $K\,\nabla L + K\,\lambda w$ | $K\,\nabla L + \lambda w$ |
# | $Kn$ | $\nabla L + K\,\lambda w$ | $\nabla L + \lambda w$ |
#
# Source S3 says: divide by $Kn$, not $n$, or the decay is $K$ times too strong. (Goyal and others 2017, section 3, warn
# of the same mistake.) In which cells of the table is that so? Decide, then run: the bars are fitted to the summed
# gradients of real workers. On the right all four train, beside one worker with all images.

# %%
runs = live("C23", device=device, seed=seed)

# %%
result = saved("C23")

# %% [markdown]
# So the advice is right, and the reason given is not quite. Only the last cell is the training run you meant. But a
# decay that is $K$ times too strong comes from *where it is added*: inside each loss. Dividing by $n$ makes the
# **data** term $K$ times too strong. With the decay outside, and the rate divided by $K$ to compensate, the decay ends
# up $K$ times too *weak*. With everything $K$ times too strong, the run is one with a $K$ times larger rate: as long as
# that rate is stable it heads for the same weights faster, and scatters more about them (notebook 01). Where one
# worker's line still rises at the end of the figure it has not arrived yet: the gap between the two is not another
# goal.
#
# With Adam the picture changes again. It divides by the gradient's own size, so a factor common to all terms drops out,
# and a sum trains like a mean. That is convenient, and hides the mistake until somebody switches to SGD.
#
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
#
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


torchrun(two_stages, 2, seed, images, needs=[first_stage, last_stage])

# %% [markdown]
# The same six updates in one process, to check it:

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
# | limited by | the network must fit on one device, unless its state is sharded (notebook 10) | stages wait for each other |
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
# recommends the second instead. The second and third are your ring with better engineering: gradients are gathered into
# larger messages, and travel while back-propagation still goes on (notebook 04). Both average. Notebook 10 runs the
# same training in both, and compares their weights.

# %% [markdown]
# ## Summary
#
# - Where a server computes all gradients, activations travel, and they grow with the batch.
# - The same global batch on more workers is the same run. This is the first test of a program.
# - Divide one shuffle among the workers: nothing is sent, and each image is used once.
# - Sum or mean, $n$ or $Kn$, decay inside or outside: only one of four combinations is the run you meant.
# - A gradient that comes late overshoots, and a spring that is stiffer keeps workers closer together.
# - Model parallelism shares memory, not time, until a pipeline fills the gaps.
#
# ## Questions
#
# <details><summary>Your program divides the loss by the per-worker batch, sums gradients, uses Adam with
# <code>weight_decay</code> in the loss of each worker, and trains well. You switch to SGD and it diverges. Why?</summary>
#
# Gradients are $K$ times too large, decay included. Adam divides that factor out; for SGD it is a rate $K$ times as
# high. Use means: divide by $Kn$, or let the all-reduce average.
#
# </details>
