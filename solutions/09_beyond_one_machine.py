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
# **After this notebook you will be able to** start workers on several computers, keep a run alive when one of them
# fails, and estimate how many workers are worth having.
#
# **Time:** about {{minutes_09}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** the ring
# all-reduce of notebook 03, notebook 04, and the warmup of notebook 06.

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
# - One worker of all writes the results: `hvd.rank() == 0`.
# - Each worker takes a GPU of its own host: the GPU with the number `hvd.local_rank()`.
# - One worker of each host fetches the data, while the others wait: `hvd.local_rank() == 0`.
#
# A program that does this runs on several hosts without a change.
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
# 25 seconds. The computing comes on top. Now make the hosts again with `--rate 1gbit`. How many seconds of the first
# epoch were spent on the link?
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
# Each update needs all workers. So when one worker dies, the others cannot go on, and the launcher ends them.
# Everything since the last checkpoint on disk is lost. On average this is half of the time between two checkpoints. But
# writing a checkpoint takes time, too.
#
# For example, a run writes a checkpoint every 10 minutes, and each takes 30 seconds. So the writing takes 30 of every
# 600 seconds, which is 5 %. A failure comes once in three hours, which is 180 minutes. Each time, 5 minutes of work are
# done again, which is 2.8 %. Together, 7.8 % of the time is lost.
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
# Now take the numbers of Llama 3. The run with 16,384 GPUs was interrupted every three hours. Counted for a single GPU,
# that is once in about six years. Say that writing takes 30 seconds. **Guess:** how often should 64 such GPUs write a
# checkpoint, and how often should 16,384? The figure draws your function for both.

# %%
from lessons.cells.plots.cluster_costs import show_share_lost

writing, between = 30, 54 * 24 * 3600 * 16_384 / 419  # seconds: to write, and from one failure of a GPU to the next
show_share_lost(share_lost, writing, between, (64, 16_384))

# %% [markdown]
# A longer interval means less writing, but more work that is done again. Look at the lines *writing* and *work done
# again*. **Where do they cross?** At the lowest point of their sum. So the best interval is the one at which both parts
# are equal:
#
# $$\frac{\text{writing}}{\text{interval}} = \frac{\text{interval}}{2} \cdot \frac{\text{workers}}{\text{between}}, \qquad
# \text{interval} = \sqrt{2 \cdot \text{writing} \cdot \frac{\text{between}}{\text{workers}}}$$
#
# (Young 1974, Communications of the ACM 17(9)). For 64 GPUs, this is 3.6 hours. For 16,384, it is 14 minutes. Then
# about 7 % of the time is lost. (The makers of Llama 3 report that more than 90 % of the time was useful. The 30
# seconds are our guess.) With ten times as many GPUs, more than a fifth would be lost. Such runs need a faster way to
# keep their state, or a way to go on without the worker that failed.
#
# <details><summary>Your own program fails once a day, and a checkpoint takes 2 minutes. How often should it write
# one?</summary>
#
# The square root of 2 x 120 x 86,400 is 4,554 seconds. So about every 76 minutes.
#
# </details>
#
# ### Going on without the dead worker
#
# **Elastic** training goes on without the dead worker. After every few updates, each worker copies its state into
# memory. This is called a **commit**. When a worker dies, the exchange fails in the others. They go back to the last
# commit, and go on from there. Here worker 3 is killed during update 6:
#
# ![](drawings/elastic_run.svg)
#
# Horovod ends all workers of a host on which one has failed. So worker 2 ends, too. (The drawing has a commit after
# every three updates. Our program has one after every ten.)
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
# The next cell starts such a run with two workers on alpha and two on beta. In the middle of the second epoch it kills
# a worker on beta, without a warning (`kill -9`). This takes one to two minutes. **Before you run it, think:** four
# workers become two. What should happen to the learning rate?

# %%
elastic = on_two_hosts("a worker is killed", seed=seed)

# %% [markdown]
# The left panel shows how many images have been used since the run began. The curve stops when the worker is killed. A
# grey band marks the pause. After it, the curve begins a little lower, because the updates since the last commit are
# made again. At the second band, new workers start on beta. They come in only at a commit, so this time no update is
# lost.
#
# Between the bands only two workers train. Yet the curve may be as steep as before, because all workers share the cores
# of your computer. On real hosts it would be half as steep.
#
# The right panel answers the question about the learning rate. Horovod does not change it. Our program computes it
# before each update:
#
#     rate = args.lr * warmup_factor(done, 3 * len(train), hvd.size())
#
# Here `done` counts the images since the run began, and a commit keeps this count. It is the warmup of notebook 06.
# Over three epochs, the rate climbs to `hvd.size()` times the base rate. With two workers the global batch is half as
# large, so the rate climbs to twice the base rate only. It falls when beta is lost, and jumps up when beta is back.
# Warmup should avoid such jumps. A more careful program would climb again in small steps.
#
# ### What is in the program
#
# A commit copies a state of three parts:
#
# - **The weights.** Without them, training would begin anew.
# - **The optimizer's state.** Without it, the first steps would have a wrong length.
# - **The images that are done in this epoch.** Without this list, some images would be used twice. A **sampler** keeps
#   it. It also decides which images a worker takes next.
#
# Here are the important lines of `source_code/cifar_elastic.py`, a little shortened:
#
#     sampler = hvd.elastic.ElasticSampler(train)
#     state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, epoch=0)
#     state.register_reset_callbacks([sampler.reset])   # after each change: divide the images that are left
#
#     def finish_epoch():                               # makes the updates that are left in this epoch
#         for number, indices in enumerate(batches_of(sampler), start=1):
#             ...                                       # one update, as in any training loop
#             sampler.record_batch(number, len(indices))
#             if number % 10 == 0:
#                 state.commit()
#
#     @hvd.elastic.run                                  # after each change of the workers, call the function again
#     def train_all_epochs(state):
#         while state.epoch < epochs:
#             finish_epoch()
#             state.epoch += 1
#             sampler.set_epoch(state.epoch)
#             state.commit()
#
#     train_all_epochs(state)
#
# When a worker dies, the exchange fails in the others, often only after they have waited for 30 seconds.
# `@hvd.elastic.run` catches this error, and goes back to the last commit. Each worker gets a new rank, and `hvd.size()`
# is smaller. Rank 0 sends its state to all others, so a new worker gets it, too.
#
# <details><summary>How is such a run started?</summary>
#
#     horovodrun -np 4 --min-np 2 --max-np 4 --host-discovery-script source_code/answering_hosts.sh \
#         --blacklist-cooldown-range 3 6 python source_code/cifar_elastic.py
#
# - The run begins with 4 workers. It goes on with at least 2, and never has more than 4.
# - The script prints the hosts that answer, such as `alpha:2` and `beta:2`. Horovod calls it once per second.
# - If one worker fails, Horovod bans its host: it puts it on a blacklist. Without the last option, the ban never ends.
#   With it, the host may take part again after 3 to 6 seconds.
#
# </details>
#
# ### What does a failure cost?
#
# We made runs with four kinds of trouble, three seeds each, and saved the results:
#
# - *a worker is killed*, as above.
# - *a host is killed*: all its processes end at once, as by a power failure.
# - *a cable is cut*: the host works, but nobody reaches it.
# - *a host leaves*: the script takes the host off its list while it still works, for example because its owner needs
#   it.
#
# In the last three, the host is back after the second epoch. **Guess:** which trouble costs the least time?

# %%
from lessons.cells.launches.hosts import show_troubles

show_troubles()

# %% [markdown]
# - **Updates made again:** at most the ten between two commits. You choose this number. A commit copies the weights, so
#   it takes time as well.
# - **The pause after a failure** is mostly waiting. Some workers, or all of them, do not notice the failure. They wait
#   for numbers that do not come, and give up after 30 seconds. The option `--gloo-timeout-seconds` sets this time.
#   (Gloo is the library that exchanges the gradients.) Do not make it too short: new workers must also start within
#   this time.
# - **The pause when beta is back** is the time in which its new workers start Python and read the images.
# - **A host that leaves costs almost nothing.** Horovod tells the workers at their next commit. So nobody waits, and no
#   update is made again. Many clouds warn you before they take a machine away.
# - **No image is left out.** We counted the images after the runs. Updates that were made again count once.
# - **We saw no loss of accuracy.** No saved run with trouble ended outside the range of the runs without trouble. But
#   this range is wide, and three short runs would not show a small loss.
# - **Alpha must not die.** `horovodrun` runs there, and the run ends with it. So start it on a computer that is
#   unlikely to fail. And still save checkpoints on disk.
#
# PyTorch's own launcher goes another way: it ends all workers, and starts them again from the last checkpoint on disk.
# Notebook 20, the lab of notebook 10, says how.
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
# for at least half of their time. This limit is our choice.
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
# **Guess:** a worker computes for 100 ms. A message takes 1 ms, and the bytes cost nothing. With how many workers do
# they wait as long as they compute?
#
# <details><summary>Compare your guess</summary>
#
# With 51: 2 x 50 messages of 1 ms take 100 ms. With 101 workers they wait twice as long. The bytes behave better:
# $(K-1)/K$ is 1/2 for two workers, and never more than 1.
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
# How long does an exchange take with this Ethernet? 102 MB are 0.82 Gbit. At 6 Gbit/s they take 0.14 s. Each worker
# sends nearly twice the gradient, so an exchange takes about 0.27 s.
#
# Each GPU computes a batch of 64 images, or one of 256. **Guess:** in which of the four cases are 64 GPUs worth having?

# %%
from IPython.display import HTML

from benchmarks.cost_models.published import WEIGHTS, value
from lessons.cells.plots.cluster_costs import exchange_table, show_exchange

gradient_bytes = 4 * WEIGHTS["ResNet-50"]
links = {  # seconds for a message, and for a byte
    "InfiniBand, 100 Gbit/s": (value("rdma latency"), 1 / value("100g")),
    "Ethernet, 6 of its 10 Gbit/s": (value("tcp latency"), 8 / (value("tcp") * 10e9)),
}
computing = {f"{batch} images": batch / 350 for batch in (64, 256)}  # seconds
show_exchange(links, computing, gradient_bytes)
HTML(exchange_table(links, computing, gradient_bytes, worth_having, size=64))

# %% [markdown]
# So the link decides, and so does the batch. In the figure, look where a line crosses a dotted one.
#
# - **64 images, Ethernet.** Its line crosses the lower dotted line between 3 and 4 workers. Already four GPUs wait for
#   more than half of their time. (64 GPUs are still faster than three. But you pay for 64, and get the work of 26.)
# - **256 images, Ethernet.** The line stays below the upper dotted line up to thousands of workers. Why so sudden a
#   jump? The line is nearly flat, because the bytes of a worker never grow beyond twice the gradient. Only the messages
#   grow, and they are short.
#
# This gives a simple rule, if nothing overlaps. **First ask whether computing takes longer than sending twice the
# gradient. If not, few GPUs are worth having. If so, the messages set the limit: they must fit into the time that is
# left.**
#
# Links of today are faster, but not all of them. The drawing shows how long the same 102 MB take:
#
# ![](drawings/bandwidths.svg)
#
# <details><summary>Computing takes 100 ms, sending twice the gradient takes 60 ms, and a message takes 0.1 ms. How many
# workers are worth having?</summary>
#
# 40 ms are left for messages, so 400 messages fit. That is $2(K-1)$ for 201 workers.
#
# </details>
#
# ### Two kinds of links
#
# The formula knows one kind of link. But inside a host, links are fast, and between hosts they are slow. In a ring over
# several hosts, the slow ones set the pace. Some libraries, such as NCCL, can exchange in three steps:
#
# ![](drawings/three_steps.svg)
#
# For example, 16 hosts with 8 GPUs each are 128 workers. In one ring, 2 x 127 messages come one after the other, and
# each step waits for the slow links. In three steps, only 2 x 15 messages are slow. A host sends nearly twice the
# gradient over its slow link in both cases. So three steps save messages, and no bytes. They help most if the gradient
# is small, because then the messages take most of the time.
#
# ### Stragglers
#
# All workers wait for the slowest one. A worker that is late now and then is called a **straggler**. Say that each
# worker is late in one of 100 updates. **Guess:** in how many updates do 64 workers wait?
#
# <details><summary>Compare your guess</summary>
#
# All 64 are in time in $0.99^{64}$ of the updates, which is 53 %. So they wait in 47 of 100 updates, and a single
# worker is late in one. (A host that is always slow can get a smaller batch. Then weigh the gradients by the counts, as
# in notebook 03.)
#
# </details>
#
# ### Your own cluster
#
# Choose a network, a link and a batch. How many workers are worth having? You can also choose when the exchange runs:
# during the backward pass (notebook 04), or after it (as in the cell above). The last dial is for workers that are
# never equally fast: it says by how many per cent their times differ in each update.

# %%
from lessons import explore

explore("efficiency")

# %% [markdown]
# **So "some tens of GPUs" is not a rule.** The number falls if the GPU is faster and the links stay the same. It grows
# if the network computes more for each parameter, or if each worker's batch is larger. This is why people want large
# batches, and it is the reason for notebook 06. (Notebook 20 measures the three times on a
# machine like yours.)
#
# It has been done, too. Goyal and others (2017) trained ResNet-50 on 8 GPUs and on 256. With 32 times as many GPUs they
# were about 29 times as fast. But more workers also mean a larger global batch. With 256 images each, 4,096 workers
# have a million images in it. Notebook 05 showed how that can make the learning worse.

# %% [markdown]
# ### Does such a model know real clusters?
#
# Is the formula good enough for real clusters? We let it predict clusters that we have never seen. Three things are
# added. Links inside a host are faster than links between hosts. The exchange overlaps with the backward pass. All
# workers wait for the slowest. Only published numbers go in, such as the speed of one GPU and of each link. Nothing is
# fitted.
#
# What comes out is the efficiency. (If each worker keeps its batch, it is the share of the time in which a worker
# computes.) We compare it with published results on up to 512 GPUs. They come from Horovod's authors, Goyal and others,
# PyTorch's developers and the authors of DLPerf.
#
# **Guess first.** Take the median error of all predictions. How many per cent is it?

# %%
my_guess = None  # a number of per cent, such as 10

# %%
from benchmarks.speed import where_it_pays
from lessons import compare, show

picture = where_it_pays.picture()
show(picture.figure, picture.alt, picture.caption)
compare("clusters", my_guess)

# %% [markdown]
# {{clusters_within}} of {{clusters_count}} predictions are within 20 % of what was published. Is that good? Compare
# three ways to predict:
#
# | prediction | median error | largest error |
# | --- | --- | --- |
# | always "no time is lost" | {{clusters_guess}} % | {{clusters_guess_largest}} % |
# | always the median of the published results | {{clusters_middle}} % | {{clusters_middle_largest}} % |
# | the model | {{clusters_median}} % | {{clusters_largest}} % |
#
# The second way is nearly as good in the median, because most published results lie near 90 %. The model is better for
# the slow clusters. But a right total does not prove that each part is right. The model misses most where something
# else takes time, such as reading the images. The page `docs/where_it_pays.md` has all rows, and the source of each
# constant.

# %% [markdown]
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
#
# <details><summary>In an elastic run, one of four workers dies 7 updates after the last commit. How many updates are made
# again, and what happens to the images of these 7?</summary>
#
# Seven. The others go back to the commit, in their weights and in the sampler. The sampler counts the images of these 7
# updates as not yet done. It divides them among the workers that are left. So each image counts once in the kept
# weights.
#
# </details>
