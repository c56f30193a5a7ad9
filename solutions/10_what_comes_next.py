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
# # 10 What comes next
#
# **After this notebook you will be able to** write the program of this course with PyTorch's own DDP, say which
# technique of communication helps on which link, and compute whether a network fits on your GPUs.
#
# **Time:** about {{minutes_10}} minutes, and less than one minute of waiting on 2 CPU cores. **Builds on:** notebooks
# 03 and 04, and the cost of an exchange in notebook 09.

# %% [markdown]
# You have written a program that trains one network with four workers. At work you will meet three new things. Another
# library: does it compute the same? A slow link: what helps? A network that is larger than a GPU: how many GPUs does it
# need? This notebook has a part for each of them.
#
# ## The same in PyTorch's own words
#
# PyTorch brings `DistributedDataParallel` (DDP; Li and others 2020, arXiv:2006.15704), launched by `torchrun`. Here is
# a whole program with Horovod. It makes ten updates on made-up data, with numbers of 64 bits (double precision).

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
written = Path("with_horovod.py").write_text(HOROVOD)

# %% [markdown]
# This table says what each part is called in both libraries. A worker talks to the others through an object, the
# **process group**. In Horovod, `hvd.init()` makes it, and you never see it. `wrapped` is the network that
# `DistributedDataParallel(net)` returns. `gloo` and `nccl` are the libraries that send the bytes.
#
# | what | Horovod | PyTorch DDP |
# | --- | --- | --- |
# | launch | `horovodrun -np 4 python train.py` | `torchrun --nproc-per-node 4 train.py` |
# | begin | `hvd.init()` | `dist.init_process_group("gloo")`, or `"nccl"` with GPUs |
# | who am I | `hvd.rank()`, `hvd.size()` | `dist.get_rank()`, `dist.get_world_size()` |
# | equal start | `hvd.broadcast_parameters(...)` | done by `DistributedDataParallel(net)` |
# | mean gradient | `hvd.DistributedOptimizer(...)`: around the optimizer | `DistributedDataParallel(net)`: around the network |
# | one writer | `if hvd.rank() == 0:` | `if dist.get_rank() == 0:`, and save `net` (which is `wrapped.module`) |
# | end | nothing to do | `del wrapped`, then `dist.destroy_process_group()` |
#
# **Your turn.** Turn the program into one that uses DDP. Change the text in the next cell, from `hvd.init()` on. The
# table has all you need. `DistributedDataParallel(net)` returns a network: give that one to `updates`, and leave
# `updates` as it is. Keep the import of `torch.distributed.nn`. Your program does not call it, but it must be loaded
# before the group exists. And end with the two lines of the last row. Without these three lines, a worker sometimes
# crashes after all its work. While `hvd.init()` is in the text, your program is skipped. Our program follows below. Do
# not look yet.

# %%
MINE = f"""
import torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists
from torch.nn.parallel import DistributedDataParallel
{SHARED}
hvd.init()
torch.manual_seed(hvd.rank())
net = torch.nn.Linear(32, 10).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
updates(net, optimizer, hvd.rank(), hvd.size())
if hvd.rank() == 0:
    torch.save(net.state_dict(), "my_ddp.pt")
"""
written = Path("my_ddp.py").write_text(MINE)
unchanged = "hvd.init()" in MINE

# %% [markdown]
# The next cell runs your program and the one with Horovod, with two workers each, and compares their weights.
# **Guess:** are the weights equal? To the last digit? (`--standalone` tells `torchrun` that all workers are on this
# host.)

# %%
import torch

from lessons.cells.launches.programs import launch


def weight_in(name: str) -> torch.Tensor:
    """The weights that a program has saved in the file `name`."""
    return torch.load(name, weights_only=True)["weight"]


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The distance between two networks' weights, divided by the length of the second."""
    return ((one - other).norm() / other.norm()).item()


launch("horovodrun", "with_horovod.py")
if unchanged:
    print("my_ddp.py still begins with hvd.init(), so it is skipped")
else:
    launch("torchrun", "my_ddp.py")
    print(f"yours: relative difference {distance(weight_in('my_ddp.pt'), weight_in('horovod.pt')):.1e}")

# %% [markdown]
# Here is ours. (The lab of this lesson, notebook 20, counts the crashes of a program without these lines, and says why
# they happen.)

# %%
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
written = Path("with_ddp.py").write_text(DDP)
launch("torchrun", "with_ddp.py")
print(f"ours: relative difference {distance(weight_in('ddp.pt'), weight_in('horovod.pt')):.1e}")

# %% [markdown]
# A number in double precision has about 16 digits. So a difference of about 1e-16 is in the last digits. With two
# workers the difference can be exactly 0, because a + b and b + a are equal. With more workers, the libraries may add
# the gradients in another order. Then a last digit differs.
#
# Three differences are easy to miss:
#
# - `hvd.allreduce` takes the mean, and `dist.all_reduce` takes the sum. (For gradients, DDP takes the mean, as Horovod
#   does. So you scale the learning rate as before.)
# - DDP makes the weights equal at the start, but not the optimizer's state. After a restart, each worker has to load it
#   from the checkpoint.
# - `DistributedSampler` **pads**: if the images cannot be divided evenly, it repeats some of them. A test accuracy is
#   then slightly wrong, unless you count each image once.
#
# <details><summary>More rows of the table, for your own program</summary>
#
# | what | Horovod | PyTorch DDP |
# | --- | --- | --- |
# | device | `torch.cuda.set_device(hvd.local_rank())` | the same with `int(os.environ["LOCAL_RANK"])` |
# | a number from all | `hvd.allreduce(x)`: a mean, unless told otherwise | `dist.all_reduce(x)`: a sum, which overwrites `x` |
# | batch norm's running statistics | averaged by you | those of worker 0 are sent at each forward pass |
# | shards | your indices, or `DistributedSampler` | `DistributedSampler`, with `set_epoch` for a new shuffle |
# | workers with fewer batches wait for the others | `hvd.join()` at the end of the epoch | `with wrapped.join():` |
# | several hosts | `-H alpha:4,beta:4` | `--nnodes 2 --rdzv-backend c10d --rdzv-endpoint alpha:29500`, typed on each |
#
# (`LOCAL_RANK` is a variable of the environment that `torchrun` sets. `rdzv` is short for rendezvous, the place where
# the workers of several hosts meet.)
#
# </details>
#
# Do not confuse DDP with the older `torch.nn.DataParallel`. PyTorch's own documentation advises to use DDP instead.
#
# ### Which bug shows?
#
# Here are two bugs that people make with DDP. The first program trains `net` in place of `wrapped`. In the second one,
# each worker uses all images of a batch. We run each with two workers. **Before you run the cell, guess** for each
# program: does it crash? Do the two workers end with equal weights? Are these the weights of the right program?

# %%
SAVED_BY_ONE = 'if dist.get_rank() == 0:\n    torch.save(net.state_dict(), "ddp.pt")'
SAVED_BY_ALL = 'torch.save(net.state_dict(), f"worker_{dist.get_rank()}.pt")'
BUGS = {
    "net in place of wrapped": ("updates(wrapped,", "updates(net,"),
    "all images on each worker": ("[rank::size]", ""),
}

for bug, (right, wrong) in BUGS.items():
    Path("buggy_ddp.py").write_text(DDP.replace(right, wrong).replace(SAVED_BY_ONE, SAVED_BY_ALL))
    print(bug)
    launch("torchrun", "buggy_ddp.py")
    zero, one = (weight_in(f"worker_{rank}.pt") for rank in range(2))
    print(f"  between the two workers: {distance(zero, one):.1e}")
    print(f"  from the right program: {distance(zero, weight_in('ddp.pt')):.1e}")

# %% [markdown]
# Neither program crashes.
#
# - **`net` in place of `wrapped`.** DDP prepares the exchange in the call `wrapped(images)`. If you call `net`, nothing
#   is exchanged. Each worker trains a network of its own. To find this bug, compare the workers' weights.
# - **All images on each worker.** Even the weights are right. Each worker computes the mean gradient of all images by
#   itself. The mean of two equal gradients changes nothing. So the second worker saves no time. To find this bug, count
#   the images.
#
# ## Which technique for which link?
#
# In notebook 09 you saw that the link decides how many workers are worth having. What can you do if your link is slow?
# The drawing shows three ideas: exchange the gradients earlier, send fewer bytes, or exchange less often. It has four
# batches on a link on which an exchange takes three times as long as computing. Grey boxes compute, and purple boxes
# are exchanges.
#
# ![](drawings/slow_link.svg)
#
# In the experiment a small ResNet trains on two hosts, with two workers on each. The hosts are made on one computer, as
# in notebook 09. Their link carries 50 Mbit/s to 10 Gbit/s. We begin with one way to send fewer bytes: each worker
# sends only the largest 1 % of its gradient's values.
#
# **Guess:** on a link of 100 Mbit/s, how many times as fast is this as to send them all? Write your number into the
# next cell.

# %%
my_guess = None  # a number of times, such as 1.2

# %% [markdown]
# **What to look at:** the line **one group** is the plain way: all gradients are exchanged as one group, after the
# backward pass. The grey band, **no exchange**, is there for comparison: each worker trains a network of its own.

# %%
from lessons import compare
from lessons.cells.plots.link_speeds import show_one_per_cent

show_one_per_cent()
compare("top_k", my_guess)

# %% [markdown]
# At 100 Mbit/s, this is {{links_top_k}} times as fast as the plain way. How many bytes does it send?
#
# | | of the gradient's bytes |
# | --- | --: |
# | 1 % of the values | 1 % |
# | a position for each value | 1 % |
# | both, to each of three others | 3 × 2 % = 6 % |
# | the plain way, a ring of four | 150 % |
#
# (Why is there no ring? The workers choose different positions, so their values cannot be added on the way.)
#
# 6 of 150 is 4 %. So why is it not 25 times as fast? Because the workers also have to compute, and the best that one
# can reach is the grey band. On a fast link, the plain way reaches it as well.
#
# (The band is wide, although a link should not matter to workers that exchange nothing. Other programs were busy at
# times. A point is the median of {{links_rounds}} rounds. The fastest of these workers are {{links_spread}} times as
# fast as the slowest. So believe only ways that differ by more than that.)
#
# ### Three answers
#
# **Begin earlier.** *Stock Horovod*, which is Horovod as it is installed, and *PyTorch's DDP* begin the exchange while
# the backward pass still computes. The thick line is the plain way again. **Guess:** on which links does this help, the
# slow ones or the fast ones?

# %%
from lessons.cells.plots.link_speeds import show_family

show_family("begin earlier")

# %% [markdown]
# **To begin earlier changes little on slow links.** Only a small part of the exchange can hide behind the backward
# pass. On the fastest link there is hardly anything to hide. DDP gains most in between, where the exchange takes about
# as long as the backward pass. Stock Horovod exchanges after each batch, too, and it is slower on all links. Its
# background threads take time from the cores that compute. (With GPUs, the processor has time for these threads. So
# leave the overlap of DDP on there.)
#
# **Fewer bytes.** *float16* sends half of the bytes. In *the largest 1 %* (**top-k**), each worker sends only its
# largest values. *PowerSGD* replaces a large matrix of gradients by the product of a narrow and a wide one, and sends
# these two.

# %%
show_family("fewer bytes")

# %% [markdown]
# **To send less changes much.** At 100 Mbit/s, with 16 images a worker, the plain way loses most of the speed. Top-k
# and PowerSGD keep most of it.
#
# **Fewer exchanges.** The batch is *4 times as large*. Or a worker adds the gradients of *4 batches*, and exchanges the
# sum once. Or it makes *8 local updates* by itself, and then the weights are averaged. **Guess:** which of the three is
# fastest on the slowest link?

# %%
show_family("fewer exchanges")

# %% [markdown]
# **To exchange less often changes much, too.** Some points lie above the grey band. Noise is one reason. With 4
# batches, the optimizer also steps less often. And with a larger batch, the processor needs less time for each of its
# images.
#
# Now look at the fastest link, under *begin earlier* and *fewer bytes*. There, the plain way is good enough:
# no other way that exchanges the gradient after every batch of this size is much faster.
#
# > **Takeaway.** On a slow link, send fewer bytes or exchange less often. On a fast one, keep the plain way.
#
# <details><summary>More about these ways</summary>
#
# - **DDP** collects gradients in groups, called buckets: the first of 1 MiB, the others of up to 25 MiB. It sends each
#   bucket when it is complete. At least the last one cannot hide behind the backward pass. On a slow link, most cannot.
# - **Top-k** also has to say where the values belong. A position takes 4 bytes, as a value does. So 1 % of the values
#   is 2 % of the bytes. The workers choose different positions. So the values cannot be summed on the way. Each worker
#   gets those of all others, and these grow with the number of workers. What a worker does not send, it adds to its
#   next gradient. Without this, a weight whose gradient is always small would never change.
# - **PowerSGD** (Vogels and others 2019, arXiv:1905.13727). The gradient of a layer with 512 x 4,608 weights is a
#   matrix of 2.4 million numbers. With rank 4, PowerSGD looks for two matrices, of 512 x 4 and of 4 x 4,608, whose
#   product is close to it. They have 20,480 numbers. Our experiment uses rank 4, inside DDP.
# - **Local updates.** The workers' weights drift apart, the farther the higher the rate is and the more their images
#   differ. So measure the distance between their weights, and average more often if it grows. If the optimizer keeps
#   averages, average these as well, or set them back. Otherwise each worker goes on in its own old direction.
#
# </details>

# %%
from lessons import all_guesses, saved

result = saved("links", verdict=False, figure=False)

# %% [markdown]
# This is speed alone. What does each technique cost?
#
# | technique | what it saves | what it may cost |
# | --- | --- | --- |
# | earlier (overlap) | waiting: nearly all of it, if the exchange is as short as the backward pass | processor time; the mean gradient stays the same |
# | float16 | half of the bytes | very small gradients become zero |
# | top-k, PowerSGD | nearly all bytes | the gradient is only approximate, so compare the accuracy |
# | larger batch, several batches | most of the exchanges | the global batch grows: notebooks 05 and 06 |
# | local updates | most of the exchanges | the weights differ until they are averaged, which may cost accuracy |
#
# Do they cost accuracy? In a second experiment, four workers trained the same small ResNet on {{savings_images}} images
# for {{savings_epochs}} epochs. They used the plain way, the ways that send fewer bytes, and local updates. **DiLoCo**
# (Douillard and others 2023, arXiv:2311.08105) is another kind of local updates. It takes the difference between the
# old weights and the mean of the workers' weights as if it were a gradient, and makes a step with momentum.
#
# **Guess:** which ways end with a lower accuracy? And which way is far behind on a link of 100 Mbit/s, when the fastest
# way has trained all its epochs?
#
# **What to look at:** *one group* is the plain way again. A point is the end of an epoch. The last points say what a
# way costs after equal epochs. A line that ends earlier needs less time.

# %%
from lessons.cells.plots.link_speeds import show_training

show_training(("10gbit", "100mbit"))

# %% [markdown]
# After {{savings_epochs}} epochs, the plain way has {{savings_group}} %. DiLoCo ends {{savings_diloco_cost}} points
# lower. (Its constants are those of its paper, where workers exchange after 500 updates. We did not tune them for 8.)
# For the other ways, no difference is seen. Even top-k is one of them. In the mean it ends {{savings_topk_cost}} points
# lower, but its seeds differ so much that this can be chance.
#
# On the slow link, time decides. Top-k has trained all its epochs after {{savings_seconds}} seconds, and has
# {{savings_topk_time}} %. At this time PowerSGD has {{savings_powersgd_time}} %, and 8 local updates have
# {{savings_local_time}} %. The plain way has {{savings_group_time}} %: it is still in its third epoch. So a gradient that
# is only approximate can be better than an exact one that comes late. (A number is the mean of {{savings_seeds}} seeds,
# with the standard deviation after ±. Where a line has no point at this time, it is read between two points.)
#
# ### Predict the figure
#
# Can you predict these speeds? Write a function for four of the ways: the plain one, to begin earlier, float16, and one
# exchange for four batches. First draw boxes for each of them, as in the drawing above. Divide each grey box into a
# forward pass and a backward pass. (For the way that begins earlier, we pretend that the exchange can begin together
# with the backward pass. So the function is a little too good there.)


# %% exercise="batch_time"
def batch_time(forward: float, backward: float, latency: float, sending: float, way: str) -> float:
    """The seconds from one batch to the next, by the way of the exchange."""
    ### BEGIN SOLUTION
    computing, exchange = forward + backward, latency + sending
    if way == "earlier":
        return forward + max(backward, exchange)
    if way == "float16":
        return computing + latency + sending / 2
    if way == "4 batches":
        return computing + exchange / 4
    return computing + exchange
    ### END SOLUTION


# %% [markdown]
# Take the numbers from what you know:
#
# - By the grey band, four workers with 16 images each make about {{links_alone}} images/s without an exchange. So an
#   update of 64 images takes about {{links_update}} ms. Say that two thirds of this are the backward pass.
# - In a ring of four, each worker sends 1.5 times the bytes of the gradient, in six messages (notebook 09). Worker 1
#   sends them to worker 2 on the other host, and worker 3 sends them to worker 0. So each host sends 1.5 times the
#   gradient over its link. This network, a small ResNet-9, has a gradient of {{links_gradient}} MB.
# - Say that a message takes 50 microseconds on its way.
#
# No number is fitted to the speeds of these ways. **Guess:** for which way will the prediction be too good on all
# links of 200 Mbit/s or less?

# %%
from benchmarks.speed.comparisons.links import seconds_alone
from lessons.cells.plots.link_speeds import show_predictions

computing = seconds_alone(result.runs)  # of an update without an exchange
forward, backward, latency = computing / 3, 2 * computing / 3, 6 * 50e-6  # seconds
show_predictions(result.runs, batch_time, forward, backward, latency)

# %% [markdown]
# <details><summary>From which rate of the link on is the plain way within 10 % of float16? Use your formula.</summary>
#
# Say that computing takes $c$ seconds, sending takes $s$, and messages take nothing. Then the plain way takes $c + s$,
# and float16 takes $c + s/2$. They differ by 10 % where $s/2 = 0.1 \cdot (c + s/2)$, so $s = 2c/9$. With $c$ =
# {{links_update}} ms, $s$ is {{links_even}} ms. In this time a worker sends 1.5 times {{links_gradient}} MB if the link
# carries about {{links_even_rate}} Mbit/s.
#
# </details>
#
# On links of 200 Mbit/s or less, the model is too good for the way that begins earlier. The exchange needs processor
# time, too. And its last part can begin only when the last gradient is there. Half of the predictions for the other
# three ways are within {{simple_error}} % of the measured speed. The page `docs/where_it_pays.md` has a model for all
# ways, numbers of hosts and batches. Half of its predictions are within {{links_error}} %. It says from which rate of
# the link each technique begins to win.
#
# ### What do you advise?
#
# Decide before you open the answers.
#
# - A. Four GPUs in one host, joined by fast links.
# - B. Two hosts on a link of 100 Mbit/s. The global batch is far below the critical batch size (notebook 01).
# - C. The same two hosts, but the global batch must not grow.
# - D. Four workers on four continents. Each message takes 100 ms, and the gradient is small.
#
# <details><summary>The answers</summary>
#
# - A. Nothing special. Take the library as it is.
# - B. A larger batch, or several batches for each exchange. Below the critical batch size this costs hardly any images.
# - C. Fewer bytes: float16 first, because its gradient is nearly exact. If that is not enough, top-k or PowerSGD. Then
#   compare the accuracy over several seeds.
# - D. Fewer messages, because the bytes take hardly any time. Put all gradients into one group. Exchange less often, if
#   the accuracy allows it. A ring of $K$ workers needs $2(K-1)$ messages one after the other. In a tree, workers add up
#   in pairs, then pairs of pairs, and so on. That takes only about $2 \log_2 K$.
#
# </details>
#
# <details><summary>How do you add the gradients of four batches with DDP?</summary>
#
# DDP exchanges the gradients in each `backward()`. Inside `with wrapped.no_sync():` it exchanges nothing. The worker
# adds the new gradient to the one that it has. The next `backward()` outside exchanges the sum. So four batches can
# share one exchange:
#
# ```python
# optimizer.zero_grad()
# with wrapped.no_sync():
#     for images, labels in first_three:
#         (cross_entropy(wrapped(images), labels) / 4).backward()  # the forward pass is inside, too
# (cross_entropy(wrapped(last_images), last_labels) / 4).backward()  # exchanges the sum
# optimizer.step()
# ```
#
# Without `no_sync()`, the result is the same, but there are four exchanges. Each loss is divided by 4, so the sum is a
# mean over the batches. The lab measures what `no_sync()` saves.
#
# If the memory allows it, one batch that is four times as large does the same, and computes faster. Choose several
# batches if it does not: together they need no more memory for activations than one does. (With batch normalisation the
# two are not the same.)
#
# </details>
#
# %% [markdown]
# ## A network that is larger than a GPU
#
# A language model with 7 billion weights is not a large one today. A large GPU has 80 GB. **Guess:** can it train this
# model?
#
# In float32 a weight has 4 bytes. Its gradient has 4, too. Adam keeps two means for each weight. Together they have 8
# bytes. (SGD with momentum keeps one, with 4 bytes.) That is 16 bytes for each weight, so 112 GB. The answer is no:
# this is more than 80 GB. (The inputs of the layers, the **activations**, need memory as well.) Horovod and DDP keep
# all of this on *each* worker. So more workers do not help.
#
# **ZeRO** divides what each worker keeps (Rajbhandari and others 2019). It has three stages. Stage 1 divides Adam's
# means. Stage 2 divides the gradients, too. Stage 3 also divides the weights. In PyTorch, stage 3 is called FSDP, for
# fully sharded (divided) data parallel (Zhao and others 2023). The drawing shows the bytes for each weight on one of
# four workers:
#
# ![](drawings/memory.svg)
#
# Write a function that says how many bytes each worker keeps.


# %% exercise="bytes_on_each"
def bytes_on_each(weights: int, workers: int, stage: int) -> float:
    """The bytes on each worker, in float32 with Adam, for stage 0 (DDP) to stage 3 of ZeRO."""
    ### BEGIN SOLUTION
    parts = [4, 4, 8]  # the bytes of a weight, of its gradient, and of Adam's two means
    whole = 3 - stage  # so many of these parts stay whole on each worker
    return weights * (sum(parts[:whole]) + sum(parts[whole:]) / workers)
    ### END SOLUTION


# %% [markdown]
# **Before you run the next cell, guess:** how many GPUs with 80 GB does the model need in stage 1, and in stage 3?
# Which stages can hold a model that is ten times as large?

# %%
for weights_of in (7_000_000_000, 70_000_000_000):
    print(f"{weights_of:,} weights")
    for stage in range(4):
        fitting = [gpus for gpus in range(1, 65) if bytes_on_each(weights_of, gpus, stage) <= 80e9]
        whole = bytes_on_each(weights_of, 1_000_000, stage) / 1e9  # what a million workers cannot divide, in GB
        print(f"    stage {stage}:", f"{fitting[0]} GPUs" if fitting else f"never: {whole:.0f} GB stay on each GPU")

# %% [markdown]
# Only stage 3 can hold the larger model, because only stage 3 divides everything. In stage 2, each GPU still keeps all
# weights. (A real run needs more GPUs, because of the activations.)
#
# ZeRO is still data parallelism: each worker has images of its own. In stage 3, each worker keeps only a share of the
# weights. Before a layer computes, the workers gather its weights. This is an *all-gather*. After the backward pass of
# a layer, each worker gets the mean gradient of its own share. This is a *reduce-scatter*. The drawing follows one
# layer. A small square is a quarter of its weights. The colour says which worker keeps it. The last row shows
# gradients. **Count the exchanges before you read on.**
#
# ![](drawings/gather_and_scatter.svg)
#
# There are two all-gathers and one reduce-scatter. In notebook 03, an all-reduce was one reduce-scatter and one
# all-gather. So stage 3 sends three halves in place of two: 1.5 times the bytes.
#
# ### Divide the network itself
#
# ZeRO divides what a worker *keeps*. There are two ways to divide what it *computes*:
#
# - **Pipeline** (Huang and others 2018): each GPU has some of the layers. The batch is cut into small parts, so that
#   all GPUs are busy most of the time. The drawing below shows this. Only the activations between two layers cross the
#   link, so a pipeline can also use a slower link. (Notebook 13 cuts a network in two like this.)
# - **Tensor parallel** (Shoeybi and others 2019): each GPU has a part of each layer. For example, a layer multiplies by
#   a matrix with 4,096 columns. Each of four GPUs keeps 1,024 of them, and computes a quarter of the outputs. The GPUs
#   exchange activations after every one or two matrices. So they should be in one host, where the links are fast.
#
# ![](drawings/pipeline.svg)
#
# Large runs use several ways at once. The processes then form a **mesh**, a table of ranks. In this example, two hosts
# have four GPUs each:
#
# ![](drawings/mesh.svg)
#
# The four workers of a host compute each layer together. Two workers with the same colour have the same part of the
# network, but other images. So they average their gradients. What crosses the slow link between the hosts? Only the
# gradients, and only once an update.
#
# <details><summary>A layer's activations have 8 MB in each batch, and the weights of a GPU have a gradient of 64 MB. A worker
# sends the activations ten times in an update, and the gradient once. What goes over the fast links, and what over the
# slow one?</summary>
#
# 10 × 8 = 80 MB of activations, and the next layer has to wait for each of them. So tensor parallelism goes over the
# fast links of a host. The gradient goes over the slow link: it is sent once, and a part of it can hide behind the
# backward pass.
#
# </details>
#
# The lab runs FSDP, and measures its memory and its bytes. There you also go on from a checkpoint with another number
# of workers.

# %% [markdown]
# ## Summary
#
# - Horovod and DDP compute the same mean gradient. Horovod wraps the optimizer, and DDP wraps the network.
# - `hvd.allreduce` takes the mean, and `dist.all_reduce` takes the sum.
# - On a slow link, it helps to send fewer bytes or to exchange less often. To begin earlier changes little.
# - Training by Adam in float32 needs 16 bytes for each weight. ZeRO divides them among the workers.
# - A pipeline divides the layers of a network, and tensor parallelism divides each layer.
#
# The lines to keep:
#
# ```python
# import torch.distributed.nn  # before the group exists
# dist.init_process_group("gloo")
# wrapped = DistributedDataParallel(net)
# loss = cross_entropy(wrapped(images), labels)  # not net(images)
# loss.backward()  # also averages the gradients of all workers
# optimizer.step()
# del wrapped
# dist.destroy_process_group()
# ```
#
# ## Questions
#
# <details><summary>Four workers count their right answers. Each calls <code>dist.all_reduce(hits)</code> and prints
# <code>hits / images</code>, where <code>images</code> is its own number of test images. What is wrong?</summary>
#
# PyTorch's all-reduce takes the sum. So the hits are those of all workers, and the images are those of one worker only.
# The result is about four times too large. Horovod's all-reduce would have given the mean of the hits.
#
# </details>
#
# <details><summary>Your link carries 100 Mbit/s, and each worker has batches of 16 images. A colleague wants to begin
# the exchange earlier. What do you answer?</summary>
#
# The exchange takes much longer than the backward pass there. So even if it begins earlier, the workers wait. It is
# better to send fewer bytes, or to exchange less often.
#
# </details>
#
# <details><summary>Stage 3 of ZeRO sends 1.5 times the bytes of DDP. Which exchange is added?</summary>
#
# The second all-gather. The weights of a layer are gathered for the forward pass, and once more for the backward pass,
# because no worker keeps them in between.
#
# </details>
#
# ## Your guesses
#
# This is the end of the course. It began with four workers that trained a worse network, although every log looked
# healthy. If you meet such a case now, you know the suspects, and an experiment for each of them.
#
# You have made guesses in the lessons. How good were they?

# %%
all_guesses()
