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
# # 09 Beyond one machine
#
# **After this notebook you will be able to** start workers on several computers, say what a failure of one of them
# costs and how a run can go on, and estimate how many workers are worth having.
#
# **Time:** about {{minutes_09}} minutes, and about half a minute of waiting on 2 CPU cores. **Builds on:** the ring
# all-reduce of notebook 03, and notebook 04. (Its first table uses words of 05 and 06.)

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## How far has it been taken?
#
# ImageNet has 1.28 million training images of 1,000 kinds of things. ResNet-50 is a network with 50 layers. How fast
# can it learn ImageNet? For some years this was a race. The goal was always the same: about 75 or 76 % of the
# validation images right, after some 90 epochs. The times are the authors' own. (M40, P100, P40 and V100 are GPUs of
# NVIDIA, from older to newer. KNL is a processor of Intel, and TPU is one of Google.)
#
# | year | processors | global batch | time | published in |
# | --- | --- | --- | --- | --- |
# | | 1 M40 GPU | | 14 days | as told by Yang You et al. 2017, arXiv:1709.05011 |
# | 2017 | 256 P100 GPUs | 8,192 | 1 hour | Goyal et al., arXiv:1706.02677 |
# | 2017 | 2,048 KNL CPUs | 32,768 | 20 minutes | Yang You et al., arXiv:1709.05011 |
# | 2017 | 1,024 P100 GPUs | 32,768 | 15 minutes | Akiba et al., arXiv:1711.04325 |
# | 2018 | 2,048 P40 GPUs | 65,536 | 6.6 minutes | Jia et al., arXiv:1807.11205 |
# | 2018 | 1,024 TPU v3 chips | 32,768 | 2.2 minutes | Ying et al., arXiv:1811.06992 |
# | 2019 | 2,048 V100 GPUs | 81,920 | 74.7 seconds | Yamazaki et al., arXiv:1903.12650 |

# %%
from lessons.cells.plots.records import show_records

show_records()

# %% [markdown]
# You know most of the recipes. Goyal and others scaled the rate and warmed it up. Yang You and others gave each layer a
# rate of its own (LARS). Jia and others computed with half-precision numbers (16 bits in place of 32), so there was
# less to send. The global batch grew with the processors. The critical batch size (notebook 05) limits how far this can
# go.
#
# The **speed-up** is the time of one worker divided by the time of several. The **efficiency** is the speed-up divided
# by the number of workers. An example: one worker needs 60 minutes, and four workers need 20. The speed-up is 3. The
# efficiency is 75 %. The four use 4 × 20 = 80 minutes of a GPU, and the one uses 60. That is worth it if you would
# rather pay than wait.
#
# So many processors do not fit into one machine. So how do programs on many machines find each other? What happens if
# one machine fails? And how many workers are worth having? These are the questions of this notebook.
#
# ## Several hosts
#
# A **host** is a computer that takes part in a run. The launcher is told which hosts to use, and how many workers to
# start on each:
#
#     horovodrun -np 4 -H alpha:2,beta:2 python train.py
#
# You probably have one computer. Linux can make several hosts of it. It gives a group of processes its own network
# card, its own host name and its own list of processes. The next cell makes two
# such hosts, called alpha and beta. Their link carries 1 Gbit/s. Then the cell starts two workers on each host.
# **Guess:** which ranks do the workers of beta get?

# %%
from lessons import on_two_hosts

two = on_two_hosts()

# %% [markdown]
# The first worker of each host has printed a line. They have rank 0 and rank 2. The rank counts all workers, from 0 to
# 3. The **local rank** counts the workers of one host, so it is 0 or 1 here. On real hosts, each with its own disk and
# its own GPUs, a program uses them like this:
#
# - One worker of all writes the results: `hvd.rank() == 0`. If two write the same file, it can be damaged.
# - Each worker takes a GPU of its own host: the GPU with the number `hvd.local_rank()`.
# - One worker of each host fetches the data: `hvd.local_rank() == 0`. The others must wait, or they read files that are
#   not complete. A small exchange of all workers, after the data are fetched, makes them wait.
# - The workers of a host share its cores: each takes cores / `hvd.local_size()` threads. With more threads than cores,
#   they take turns, and all get slower.
#
# A program that does this runs on several hosts without a change.
#
# ### What real hosts need
#
# The launcher logs in to each host by `ssh`, the usual program for commands on another computer. Three things must be
# right:
#
# - You need an `ssh` key, a file that stands for a password, because the launcher cannot type one.
# - The program, Python with its packages, and the data are at the same path on each host, in the same versions.
# - The hosts reach each other over the network, and no firewall (a program that refuses connections) blocks the way.
#
# From alpha, `ssh beta ls /home/me/train.py` tests the key and the program. It must print the path, and ask for
# nothing.
#
# <details><summary>What if a run stands still at its start?</summary>
#
# Test with a tiny program. It prints the versions of its libraries, calls `hvd.init()`, prints its rank, and sums one
# number. If some ranks are not printed, the workers have not found each other. If all are printed and there is no sum,
# the numbers do not get through. In both cases look at three things:
#
# - Do the printed versions differ?
# - Does a firewall block the way? In an empty folder on beta, start a small web server at the door (port) 8000:
#   `python -m http.server 8000`. On alpha, `curl beta:8000` asks it for a page. If no answer comes, the way is blocked.
#   If one comes, this port is open. Horovod uses other ports, a new one each time, so ask whether all ports between the
#   hosts are open. Then end the server by Ctrl+C.
# - Does the host's name belong to another network card? A host often has several cards. `getent hosts beta` prints the
#   address to which the name belongs, and `ip address` on beta prints the address of each card. If the wrong card has
#   it, choose one by its name: `horovodrun --network-interfaces eth0`.
#
# </details>
#
# ### A slow link
#
# **Your turn.** Open a terminal in the course's folder and make two hosts with a slower link. You get a shell on alpha.
# There, train with one worker on each host. When you leave the shell by `exit`, both hosts are gone.
#
#     python -m cluster up --hosts 2 --rate 20mbit
#     horovodrun -np 2 -H alpha:1,beta:1 python source_code/cifar_base.py --images 2048 --epochs 1 --batch-size 32
#     exit
#
# The network has 482,442 weights of 4 bytes. **Before you type the second line, guess:** how many seconds does the link
# need for one epoch? Leave out the computing.
#
# <details><summary>Compare your guess</summary>
#
# An epoch has 2048 / (2 x 32) = 32 updates. In a ring of two, each worker sends all bytes of the gradient once
# (notebook 03): 1.93 MB, or 15.4 million bits. At 20 million bits a second this takes 0.77 seconds, and 32 updates take
# 25 seconds. The computing comes on top. Now make the hosts again with `--rate 1gbit`, and take the difference of the
# two times. It is what the slow link has cost.
#
# </details>
#
# ## A worker dies
#
# The language model Llama 3 was trained on 16,384 GPUs. In 54 days there were 419 unexpected interruptions (Grattafiori
# and others 2024, arXiv:2407.21783). That is one in about three hours. With twice the computers, something fails twice
# as often.
#
# <details><summary>Can such a run get through a day without an interruption?</summary>
#
# Hardly. If interruptions come independently, $m$ on average, then none comes with the probability $e^{-m}$ (the
# Poisson distribution). In three hours, one is expected: $e^{-1}$ is 37 %. In a day, eight are expected: $e^{-8}$ is
# 0.03 %.
#
# </details>
#
# ### How often should you save?
#
# Each update needs all workers. So when one worker dies, the others cannot go on, and the launcher ends them. A
# checkpoint has the weights, the state of the optimizer, and the numbers of the epoch and the update. Without the
# optimizer's averages the loss jumps after a restart. Without the numbers, the schedule begins anew: the rate is high
# again, and the loss rises and stays higher. The shuffling, too, begins again with the orders of the first epochs. (One
# worker writes it, under another name, and renames it when it is complete. After a restart, this worker reads it and
# broadcasts it: notebook 04.) Everything since the last checkpoint on disk is lost. On average this is half of the time
# between two checkpoints. But writing a checkpoint takes time, too.
#
# For example, a run writes a checkpoint every 10 minutes, and each takes 30 seconds. So the writing takes 30 of every
# 600 seconds, which is 5 %. A failure comes once in three hours, which is 180 minutes. Each time, 5 minutes of work are
# done again, which is 2.8 %. Together, 7.8 % of the time is lost. (If a restart takes time, add it to the 5 minutes.)
#
# More workers fail more often, because each of them can end the run. If each worker fails once in 40 days, two workers
# together have a failure every 20 days. Write a function for any number of workers.


# %% exercise="share_lost"
def share_lost(interval: float, writing: float, between: float, workers: int) -> float:
    """The share of the time that is lost. All times are in seconds, and each worker fails once in `between`."""
    ### BEGIN SOLUTION
    failures_per_second = workers / between
    return writing / interval + interval / 2 * failures_per_second
    ### END SOLUTION


# %% [markdown]
# Now take the numbers of Llama 3. The run with 16,384 GPUs was interrupted every three hours. A single one of these
# GPUs would fail once in 16,384 × 3 hours, which is about six years. Say that writing takes 30 seconds. **Guess:** how
# often should 64 such GPUs write a checkpoint, and how often should 16,384? The figure draws your function for both.

# %%
from lessons.cells.plots.cluster_costs import show_share_lost

writing, between = 30, 54 * 24 * 3600 * 16_384 / 419  # seconds: to write, and from one failure of a GPU to the next
show_share_lost(share_lost, writing, between, (64, 16_384))

# %% [markdown]
# A longer interval means less writing, but more work that is done again. Look at the lines *writing* and *work done
# again*. **Where do they cross?** Exactly at the lowest point of their sum. (The box below says why.) So at the best
# interval both parts are equal:
#
# $$\frac{\text{writing}}{\text{interval}} = \frac{\text{interval}}{2} \cdot \frac{\text{workers}}{\text{between}}.$$
#
# Multiply both sides by the interval, and solve for it:
#
# $$\text{interval} = \sqrt{2 \cdot \text{writing} \cdot \frac{\text{between}}{\text{workers}}}$$
#
# (Young 1974, Communications of the ACM 17(9)). For 64 GPUs, this is 3.6 hours. For 16,384, it is 14 minutes. Then
# about 7 % of the time is lost. (The makers of Llama 3 report that more than 90 % of the time was useful. The 30
# seconds are our guess.) With ten times as many GPUs, the share is $\sqrt{10}$ times
# as large, more than a fifth. Such runs need a faster way to
# keep their state, or a way to go on without the worker that failed.
#
# <details><summary>Why is the sum lowest where the lines cross?</summary>
#
# With the interval $x$, the sum is $w/x + rx/2$, where $w$ is the writing and $r$ the failures per second. Its
# derivative is $-w/x^2 + r/2$. Set it to 0, and multiply by $x$: then $w/x = rx/2$, so both parts are equal.
#
# </details>
#
# <details><summary>You take four times as many workers. How does the best interval change?</summary>
#
# It is half as long, because of the square root.
#
# </details>
#
# ### Going on without the dead worker
#
# **Elastic** training goes on without the dead worker. In short:
#
# 1. After every few updates, each worker copies its weights and the state of its optimizer into memory, with a list of
#    the images that are done in this epoch.
#    This is called a **commit**.
# 2. A worker dies. The others get an error from their next exchange.
# 3. They go back to the last commit, share out the images that are left, and go on. So no image is left out. (The
#    program's sampler is made anew, with the new number of workers. So is the rate, which was multiplied by the old
#    number. And an epoch has another number of updates now, so the schedule counts epochs.)
# 4. The launcher asks all the time which hosts answer. When the lost host is back, it starts new workers there. They
#    come in at the next commit, and get the state from the others.
#
# For this, the program must be written with commits. And the launcher must know how many workers are enough to go on,
# and how to ask for the hosts: `horovodrun -np 4 --min-np 2 --host-discovery-script ./hosts.sh python train.py`.
#
# Here worker 3 is killed during update 6:
#
# ![](drawings/elastic_run.svg)
#
# Horovod ends all workers of a host on which one has failed. So worker 2 ends, too.
#
# **Read the drawing.** Which updates are made twice? How many images does update 7 use, if each worker has 64? When do
# the new workers come in?
#
# <details><summary>Compare your answers</summary>
#
# Updates 4 and 5 are made twice, because the last commit was after update 3. Update 7 uses 2 × 64 = 128 images, and
# update 3 used 256. The new workers come in at a commit, because then no work is lost.
#
# </details>
#
# The lab of this lesson (notebook 19) kills a worker in a real run, and shows the program, `cifar_elastic.py`. We also
# made such runs with four kinds of trouble, and found two things. No run left out an image. And the expensive part of a
# failure is not the repeated updates: the others wait up to 30 seconds before they give up on the dead worker.
#
# This is a good place for a pause. The next part needs nothing from the hosts alpha and beta.

# %% [markdown]
# ## How many workers are worth having?
#
# You have 64 GPUs and one network to train. Should all 64 train it? One public source says no: synchronous training is
# impractical with more than some tens of GPUs. **Synchronous** means that in each update all workers wait for each
# other, as ours do. **Before you read on, guess:** is that so?
#
# We need a measure. A worker computes for a part of its time, and waits for the rest. If 64 workers compute for a third
# of their time, they do the work of 21 workers that never wait. Workers are **worth having** as long as they compute
# for at least half of their time. At one half, the same work costs twice the GPU time. This limit is our choice. (In
# the words of the first section, the share is the efficiency, and the 21 workers are the speed-up.)
#
# ### What an exchange costs
#
# An exchange in a ring costs time in three ways:
#
# - **Messages.** Each of $K$ workers sends $2(K-1)$ messages, one after the other. Even an empty message takes time on
#   its way, the latency of notebook 03.
# - **Bytes.** In all its messages together, a worker sends $2(K-1)/K$ times the gradient (notebook 03). Each byte takes
#   time.
# - **Agreeing.** Horovod begins an exchange only when all workers have said that they are ready. This comes once for
#   each exchange.
#
# All three together (Hockney 1994 for the first two):
#
# $$\text{exchange} = \text{agreeing} + 2(K-1) \cdot \text{latency} + 2\,\frac{K-1}{K} \cdot \text{gradient bytes} \cdot \text{byte time}.$$
#
# The *byte time* is 1 divided by the bandwidth. An example with four workers: agreeing takes 2 ms, and a message 1 ms.
# The gradient has 100 MB, and the link carries 1 GB/s. So a byte takes a billionth of a second.
#
# | part | | ms |
# | --- | --- | --: |
# | agreeing | | 2 |
# | messages | 2 × 3 × 1 ms | 6 |
# | bytes | 2 × 3/4 × 100 MB / (1 GB/s) | 150 |
# | an exchange | | 158 |
#
# Say that a worker computes for 200 ms in each update. Then it computes for 200 of 358 ms, which is 56 % of its time.
# So four workers are worth having.
#
# **Your turn:** how long does an exchange take with 8 workers, and with 100? Are they worth having?
#
# <details><summary>Compare your answer</summary>
#
# With 8: 2 + 14 + 175 = 191 ms, so they are just worth having. With 100: 2 + 198 + 198 = 398 ms, so they are not. The
# messages grow with every worker. The bytes hardly grow: $(K-1)/K$ is 3/4 for four workers, and never more than 1.
#
# </details>
#
# So there is a largest number of workers that are worth having. Write a function that finds it.


# %% exercise="worth_having"
def worth_having(computing: float, latency: float, byte_time: float, agreeing: float, gradient_bytes: int) -> int:
    """The largest number of workers, at most 4096, that compute for at least half of their time."""
    ### BEGIN SOLUTION
    workers = 1
    while workers < 4096:
        steps = 2 * workers  # of workers + 1 in a ring
        exchange = agreeing + steps * latency + steps / (workers + 1) * gradient_bytes * byte_time
        if exchange > computing:
            break
        workers += 1
    return workers
    ### END SOLUTION


# %% [markdown]
# ### Back to the 64 GPUs
#
# They train ResNet-50. A V100, a GPU of 2017, trains it with about 350 images a second (DLPerf 2020). Its gradient has
# 102 MB. The cell below tries two links of that time. InfiniBand is a fast network for clusters. Ethernet is the common
# one. It reaches only about 60 % of its rate, so we count 6 of its 10 Gbit/s. (We leave out the agreeing.)
#
# Each GPU computes a batch of 64 images, or one of 256. Here is the first of four cases. With this Ethernet, 102 MB are
# 0.82 Gbit, and take 0.14 s. Each worker sends nearly twice the gradient, so an exchange takes about 270 ms. Computing
# 64 images takes 64/350 s, or 183 ms. A worker computes for less than half of its time.
#
# | link | batch | computing | exchange | 64 GPUs worth having? |
# | --- | --: | --: | --: | --- |
# | Ethernet, 6 Gbit/s | 64 | 183 ms | 270 ms | no |
# | Ethernet, 6 Gbit/s | 256 | ? | ? | ? |
# | InfiniBand, 100 Gbit/s | 64 | ? | ? | ? |
# | InfiniBand, 100 Gbit/s | 256 | ? | ? | ? |
#
# **Your turn:** fill in the other three, roughly. The next cell uses your function. In its figure, the dotted lines are
# the two computing times.

# %%
from IPython.display import HTML

from lessons.cells.plots.cluster_costs import exchange_table, show_exchange

gradient_bytes = 102_400_000
links = {  # seconds for a message, and for a byte
    "Ethernet, 6 of its 10 Gbit/s": (40e-6, 8 / 6e9),
    "InfiniBand, 100 Gbit/s": (9.6e-6, 8 / 96e9),
}
computing = {f"{batch} images": batch / 350 for batch in (64, 256)}  # seconds
show_exchange(links, computing, gradient_bytes)
HTML(exchange_table(links, computing, gradient_bytes, worth_having, size=64))

# %% [markdown]
# So the link decides, and so does the batch. In the figure, look where a line crosses a dotted one.
#
# - **InfiniBand.** Its line stays far below both dotted lines, so 64 GPUs are worth having with both batches.
# - **64 images, Ethernet.** Its line crosses the lower dotted line between 3 and 4 workers. Already four GPUs wait for
#   more than half of their time. (64 GPUs are still faster than three. But you pay for 64, and get the work of 26.)
# - **256 images, Ethernet.** The line stays below the upper dotted line up to thousands of workers. Why not three, but
#   thousands? The line is nearly flat, because the bytes of a worker never grow beyond twice the gradient. Only the
#   messages grow, and they are short.
#
# This gives a simple rule, if nothing overlaps: **compare the computing with sending twice the gradient.**
#
# - Sending takes longer: only few GPUs are worth having.
# - Computing takes longer: there is some time left, and the messages must fit into it. They set the limit.
#
# <details><summary>Computing takes 100 ms, sending twice the gradient takes 60 ms, and a message takes 0.1 ms. How many
# workers are worth having?</summary>
#
# 40 ms are left for messages, so 400 messages fit. That is $2(K-1)$ for 201 workers.
#
# </details>
#
# **So "some tens of GPUs" is not a rule.** The number falls if the GPU is faster and the links stay the same. It grows
# if each worker's batch is larger, or if the network computes more for each parameter. (A convolution uses each of its
# weights at many places of the image, so it computes much and has little to send.) This is why people want large
# batches, and it is the reason for notebook 06. (Notebook 20 measures the three times on a machine like yours.)
#
# Large clusters have been used well. Goyal and others (2017) trained ResNet-50 on 8 GPUs and on 256. With 32 times as
# many GPUs they were about 29 times as fast. But more workers also mean a larger global batch. With 256 images each,
# 4,096 workers have a million images in it. Notebook 05 showed how that can make the learning worse.
#
# Links of today are faster, but not all of them. The drawing shows how long the same 102 MB take:
#
# ![](drawings/bandwidths.svg)
#
# ### Two kinds of links
#
# The formula knows one kind of link. But inside a host, links are fast, and between hosts they are slow. In a ring over
# several hosts, the slow ones set the pace. Some libraries, such as NCCL, can exchange in three steps. They
# add up inside each host, exchange between the hosts, and hand out the result inside each host:
#
# ![](drawings/three_steps.svg)
#
# For example, 16 hosts with 8 GPUs each are 128 workers. In one ring, 2 x 127 messages come one after the other, and
# each step waits for the slow links. In three steps, only the 16 hosts form a slow ring, with 2 x 15 messages. A host
# sends nearly twice the gradient over its slow link in both cases. So three steps save messages, and no bytes. They
# help most if the gradient is small, because then the messages take most of the time.
#
# ### Stragglers
#
# All workers wait for the slowest one. A worker that is late now and then is called a **straggler**. Say that each
# worker is late in one of 100 updates. **Guess:** in how many updates do 64 workers wait?
#
# <details><summary>Compare your guess</summary>
#
# All 64 are in time in $0.99^{64}$ of the updates, which is 53 %. So they wait in 47 of 100 updates, and a single
# worker is late in one. (To find a slow worker, let each print how long it computes before it begins to wait. A host
# that is always slow can get a smaller batch. Then weigh the gradients by the counts, as in notebook 03.)
#
# </details>
#
# ### Your own cluster
#
# Choose a network, a link and a batch. How many workers are worth having? The dials begin with the 64 GPUs above, on
# Ethernet, with 64 images each.
#
# **Guess, and then try each change alone.** With 8 workers, what makes the share larger: an exchange that overlaps with
# the backward pass (notebook 04), or a batch of 128 images?

# %%
from lessons import explore

explore("efficiency")

# %% [markdown]
# <details><summary>Compare your guess</summary>
#
# They do the same: with overlap the 8 workers compute for 61 % of their time, and with 128 images for 61 %. Before, it
# was 43 %. Now choose both at once: the whole exchange hides behind the longer backward pass, and the share is 100 %.
# (The dials leave out the tail of notebook 04. So in truth the share is a little smaller.)
#
# </details>
#
# The last dial says by how many per cent the times of the workers differ. And in *strong scaling*, all workers together
# have one batch: try it with 512 images.
#
# Can you trust such a model? The lab (notebook 19) lets it predict real clusters that it had never seen, of up to 512
# GPUs. Guess there how far off it is.
#
# ## Summary
#
# - With several hosts, the launch command changes. The program stays, if it uses ranks and local ranks rightly.
# - An elastic run goes on without a dead worker. It repeats the updates since the last commit, and leaves out no image.
# - In a ring, a worker never sends more than twice the gradient. The messages grow with the number of workers, and so
#   does the wait for the slowest.
# - More workers are worth having if each computes for longer, or if the exchange is shorter.
#
# The lines to keep:
#
# ```python
# messages = 2 * (workers - 1) * latency
# exchange = agreeing + messages + 2 * (workers - 1) / workers * gradient_bytes * byte_time
# share = computing / (computing + exchange)  # of its time, in which a worker computes
# ```
#
# **Still open:** what can you do if a link is too slow? And most new programs use PyTorch's own library in place of
# Horovod. What changes there? That is notebook 10.

# %% [markdown]
# ## Questions
#
# <details><summary>You double the per-worker batch. Which terms of the cost of an update change?</summary>
#
# Computing takes about twice as long. The exchange takes as long as before, because the gradient has four bytes for
# each parameter, whatever the batch. So workers spend a larger share of their time computing. What a larger batch does
# to learning is the subject of notebooks 05 and 06.
#
# </details>
#
# <details><summary>A program chooses its GPU by <code>hvd.rank()</code>. It works on one host. What happens on two hosts
# with four GPUs each?</summary>
#
# Workers 4 to 7 ask for GPUs 4 to 7, which their host does not have. They must ask by local rank.
#
# </details>
#
# <details><summary>Every worker is a straggler now and then. Why does that hurt 1,000 workers more than 10?</summary>
#
# Each update waits for the slowest. If each worker is late once in 1,000 updates, ten workers wait in about one update
# of a hundred. A thousand workers wait in most of them.
#
# </details>
