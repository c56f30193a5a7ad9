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
# ## Several hosts
#
# A **host** is a computer that takes part in a run. If a program uses ranks and local ranks rightly, nothing in it
# changes when there are several hosts. The launcher is told which hosts to use, and how many workers to start on each:
#
#     horovodrun -np 4 -H alpha:2,beta:2 python train.py
#
# The launcher logs in to each host by `ssh`. It cannot type a password, so you need a key. The program, the environment
# and the data must be at the same path on each host. The workers then talk to each other directly. So all hosts must
# use a network card on which they reach each other, and no firewall may block the way. If a run stands still at its
# start, test with a tiny program that prints its rank and sums one number.
#
# You probably have one computer. Linux can make several hosts of it. It can give a group of processes its own network
# card, its own host name and its own list of processes. To these processes, the group looks like a computer of its own.
# Containers are made in the same way. The next cell makes two such hosts, called alpha and beta. Their link carries 1
# Gbit/s, as a cable between two computers often does. Then the cell starts two workers on each host.

# %%
from lessons import on_two_hosts

two = on_two_hosts()

# %% [markdown]
# The first worker of each host says how many workers its host has. These two workers have rank 0 and rank 2. The rank
# counts all workers, from 0 to 3. The **local rank** counts the workers of one host, so it is 0 or 1 on each host here.
# On real hosts, each with its own disk and its own GPUs, a program uses them like this:
#
# - One worker of all writes the results: `hvd.rank() == 0`.
# - Each worker takes a GPU of its own host: the GPU with the number `hvd.local_rank()`.
# - One worker of each host fetches the data, while the others wait: `hvd.local_rank() == 0`.
#
# To try more, open a terminal in the course's folder and type
#
#     python -m cluster up --hosts 2 --rate 1gbit
#
# You get a shell on alpha. There you can type `horovodrun` commands. When you leave the shell by `exit`, both hosts are
# gone.
#
# ## A worker dies
#
# The language model Llama 3 was trained on 16,384 GPUs. In 54 days there were 419 unexpected interruptions (Grattafiori
# and others 2024, arXiv:2407.21783). That is one in about three hours.
#
# Each update needs all workers. So when one worker dies, the others cannot go on, and the launcher ends them. What is
# lost then? Everything since the last checkpoint on disk, or the whole run if there is none. On average this is half of
# the time between two checkpoints. But each checkpoint takes time to write. So how often should you write one? Say that
# writing takes 30 seconds, and that something fails once in three hours:

# %%
writing, between = 30, 3 * 3600  # seconds: to write a checkpoint, and from one failure to the next
for minutes in (1, 5, 10, 15, 30, 60):
    interval = 60 * minutes
    lost = writing / interval + (interval / 2) / between
    print(f"a checkpoint every {minutes:2} minutes: {lost:.1%} of the time is lost")

# %% [markdown]
# The first part of the lost time is writing. It falls if the interval is longer. The second part is work that is done
# again. It grows with the interval. The sum is smallest where both are equal. (Set the derivative to 0 to see it.)
# There, writing / interval = interval / (2 x between). So the best interval is
#
# $$\sqrt{2 \cdot \text{writing} \cdot \text{between}}$$
#
# (Young 1974, Communications of the ACM 17(9)). Here that is 805 seconds, or about 13 minutes.
#
# <details><summary>Your own program fails once a day, and a checkpoint takes 2 minutes. How often should it write
# one?</summary>
#
# The square root of 2 x 120 x 86,400 is 4,554 seconds. So about every 76 minutes.
#
# </details>
#
# **Elastic** training goes on without the dead worker. Every few updates, each worker keeps a copy of the training's
# state in memory. This is called a **commit**. When a worker dies, the others go back to the last commit. They get new
# ranks and a new size, and continue. Here are the important lines of `source_code/cifar_elastic.py`:
#
#     sampler = hvd.elastic.ElasticSampler(train)
#     state = hvd.elastic.TorchState(net, optimizer, sampler=sampler, epoch=0)
#     state.register_reset_callbacks([sampler.reset])
#
#     @hvd.elastic.run
#     def train_all_epochs(state):      # is called again after each change of the workers
#         while state.epoch < epochs:
#             finish_epoch()            # makes the updates that are left in this epoch, and commits after every 10
#             state.epoch += 1
#             sampler.set_epoch(state.epoch)
#             state.commit()
#
#     train_all_epochs(state)
#
# `finish_epoch()` is a training loop as in the earlier notebooks, with two more calls. After each update,
# `sampler.record_batch(...)` notes which images are done. After every tenth update, `state.commit()` keeps the state.
#
# When workers leave or come, the images that are left must be divided again. `register_reset_callbacks` makes Horovod
# call `sampler.reset` after each change, which does this. Without it, nobody would train on the images of a lost worker.
#
# The program is started in a new way:
#
#     horovodrun -np 4 --min-np 2 --max-np 4 --host-discovery-script source_code/answering_hosts.sh \
#         --blacklist-cooldown-range 3 6 python source_code/cifar_elastic.py
#
# - The run begins with 4 workers. It goes on as long as there are at least 2. It never has more than 4.
# - The script prints the hosts that answer, such as `alpha:2` and `beta:2`. Horovod calls it once per second.
# - If one worker of a host fails, Horovod ends the other workers of this host, too, and bans the whole host. The ban of
#   this host begins when the remaining workers train again. With `--blacklist-cooldown-range 3 6`, it lasts 3 to 6
#   seconds. Without this option it never ends.
#
# The next cell starts such a run with two workers on alpha and two on beta. In the middle of the second epoch it kills
# a worker on beta by `kill -9`. This takes one to two minutes. **Before you run it, think:** the other worker of beta
# ends as well, so four workers become two. What should happen to the learning rate?

# %%
elastic = on_two_hosts("a worker is killed", seed=seed)

# %% [markdown]
# The left panel shows how many images have been used since the run began. The curve stops when the worker is killed. A
# grey band marks the pause. After it, the curve begins a little lower, because the updates since the last commit are
# made again. At the second grey band, new workers start on beta, and they get the state from the others. This time no
# update is lost: the others let new workers in only at a commit.
#
# Between the bands there are only two workers, and yet the curve may be as steep as before. That is because all workers
# share the cores of your computer. On a computer with two cores, two workers use them as well as four. On real hosts,
# half of the workers use half as many images in a second.
#
# The right panel shows the learning rate. Horovod does not change it. Our program computes it before each update:
#
#     rate = args.lr * warmup_factor(done, 3 * len(train), hvd.size())
#
# This is the warmup of notebook 06. It climbs from the base rate to `hvd.size()` times the base rate, over three
# epochs. With two workers the global batch is half as large, so it climbs to twice the base rate only. The rate falls
# when beta is lost, and jumps up when it is back. A more careful program than ours would climb again in small steps,
# because a jump of the rate is what warmup wants to avoid. The test accuracy may be lower in the epoch after the jump.
#
# What does a failure cost? We made such runs before, with three seeds each, and saved the results. Besides the *killed
# worker* there are three other kinds of trouble. A *killed host* loses all its processes at once, as by a power
# failure. It starts again after the second epoch. A *cut cable* is put back after the second epoch. The last kind is
# called *a host leaves*: the script takes the host off its list, for example because its owner needs it. The host still
# works at that moment. After the second epoch it is on the list again.

# %%
from lessons.cells.hosts import show_troubles

show_troubles()

# %% [markdown]
# - **The updates** that are made again are at most those between two commits: ten here. You choose this number. A
#   commit copies the weights, so it takes time as well.
# - **The pause after a failure** is mostly waiting. We watched a few runs. One or two workers noticed at once that
#   their connection to the killed worker was closed. They stopped exchanging, but nobody told the others. The others
#   waited for numbers that did not come, and gave up after 30 seconds. After a cut cable no worker noticed anything.
#   All of them waited for 30 seconds.
# - These 30 seconds are an option of Gloo, the library that exchanges the gradients: `--gloo-timeout-seconds`. Do not
#   make it too short. New workers must also start within this time, because the others wait for them in an exchange.
#   When we tried 10 seconds on a busy computer, some runs ended as beta came back, because its workers needed longer.
# - **The pause when beta is back** is the time in which its new workers start Python and read the images.
# - **A host that leaves costs almost nothing.** Horovod tells the workers about it at their next commit. So no worker
#   waits for an answer that does not come, and no update is made again. Many clouds warn you some time before they take
#   a machine away. If the script learns about it in time, you lose nothing.
# - **No image is left out.** Each worker of `cifar_elastic.py` writes down the images of each update. We counted them
#   after the runs. Updates that were made again count once.
# - **We saw no loss of accuracy.** No saved run with trouble ended outside the range of the runs in which nothing went
#   wrong. But this range is wide, and three runs of five short epochs would not show a small loss. Your own run may end
#   lower or higher: it is one run.
# - **Alpha must not die.** `horovodrun` runs there, and the run ends with it. So start `horovodrun` on a computer that
#   is unlikely to fail, for example one that does not train. And still save checkpoints on disk.
#
# <details><summary>What does PyTorch's launcher do when a worker dies?</summary>
#
# `torchrun` goes another way. Started on each host with `--nnodes 1:2 --max-restarts 3`, it
# accepts one or two hosts. When a host is lost, it ends *all* workers, and starts the program again on the hosts that
# are left. It does so at most three times. Nothing is kept in memory, so the program must load its last checkpoint from
# disk when it begins.
#
# If you try it, set the variable `TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1`. Without it, the restarted workers may look for
# dead ones, and every restart failed in a run of ours (https://github.com/pytorch/pytorch/issues/135712).
#
# </details>

# %% [markdown]
# ## How many workers are worth having?
#
# You have 64 GPUs and one network to train. Should all 64 train it? One of the five public sources whose claims this
# course examines says no: synchronous training is impractical with more than some tens of GPUs. **Synchronous** means
# that in each update all workers wait for each other, as ours do. **Before you read on, guess:** is that so?
#
# We need a measure. A worker computes for a part of its time, and waits for the rest. If 64 workers compute for a third
# of their time, they do the work of 21 workers that never wait. We call workers **worth having** as long as they
# compute for at least half of their time. This limit is our choice: below it, you pay for more waiting than computing.
#
# Let us count what an update costs. The workers compute their gradients, and then they exchange them in a ring. The
# exchange costs time in three ways:
#
# - **Messages.** In a ring of $K$ workers, each worker sends $2(K-1)$ messages, one after the other. Each message takes
#   a time $\alpha$ on its way, even if it is empty. This time is called the **latency**. ($\alpha$ and $\beta$ are
#   times here, and not hosts.)
# - **Bytes.** Each byte takes a time $\beta$. If the gradient has $n$ bytes, each message carries $n/K$ of them.
# - **Agreeing.** Horovod begins an exchange only when all workers have told each other that they are ready. We call
#   this time $\gamma$. It comes once for each exchange.
#
# All three together (Hockney 1994 for $\alpha$ and $\beta$):
#
# $$t(K, n) = \gamma + 2(K-1)\,\alpha + 2\,\frac{K-1}{K}\,n\,\beta.$$
#
# The drawing shows how many bytes some links carry in a second, and how long 102 MB take:
#
# ![](drawings/bandwidths.svg)
#
# Take an example. A worker computes for 100 ms, and a message takes $\alpha$ = 1 ms. With 51 workers there are 2 x 50 =
# 100 messages, one after the other. They take 100 ms. So the workers wait as long as they compute, even if the bytes
# cost nothing. With 101 workers they wait twice as long. The bytes behave better: $(K-1)/K$ is 1/2 for two workers, and
# never more than 1.
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
# Now answer the question from above. A V100 trains ResNet-50 with about 350 images a second (DLPerf 2020). Its gradient
# has 102 MB. Find your own link in the drawing above. In a ring, an exchange takes nearly twice the time that you see
# there, because each worker sends nearly twice the gradient. (We leave out $\gamma$. And an Ethernet with TCP reaches
# only about 60 % of its rate, so we count 6 of the 10 Gbit/s.) How much work do 64 GPUs do, with batches of 64 or 256
# images, and with two kinds of links? And what does your function say?

# %%
from benchmarks.methods.published import WEIGHTS, value
from benchmarks.methods.ring_all_reduce import ring

gradient_bytes = 4 * WEIGHTS["ResNet-50"]
reached = value("tcp")  # the share of its bandwidth that such an Ethernet reaches with TCP
links = {  # seconds for a message, and for a byte
    "InfiniBand, 100 Gbit/s": (value("rdma latency"), 1 / value("100g")),
    f"Ethernet, {10 * reached:.0f} of its 10 Gbit/s": (value("tcp latency"), 8 / (reached * 10e9)),
}
for link, (latency, byte_time) in links.items():
    exchange = ring((0, latency, byte_time), 64, gradient_bytes)
    print(f"{link}: an exchange of 64 GPUs takes {1000 * exchange:.0f} ms")
    for batch in (64, 256):
        computing = batch / 350  # seconds
        work = 64 * computing / (computing + exchange)
        count = worth_having(computing, latency, byte_time, 0, gradient_bytes)
        worth = f"{count:,} GPUs" if count < 4096 else "thousands of GPUs"
        print(f"    {batch:3} images, {1000 * computing:.0f} ms of computing, {64 * batch:,} in the global batch:")
        print(f"        64 GPUs do the work of {work:.0f}, and {worth} are worth having")

# %% [markdown]
# So the link decides, and so does the batch. 64 GPUs are worth having by our measure if they do the work of 32 or more.
# With a batch of 64 images, this is so with InfiniBand, and not with this Ethernet: there, already four GPUs wait for
# more than half of their time. (64 GPUs are still faster than three. But you pay for 64, and get the work of 26.) With
# 256 images, thousands are worth having. Why so sudden a jump? In a ring, the bytes of a worker grow to twice the
# gradient, and no further. If a worker computes for longer than these bytes take, only the messages set a limit, and
# that is far away. A larger batch computes for longer between two exchanges, so more workers are worth having.
#
# One cost is not in the formula. All workers wait for the **slowest** one. Every worker is slow now and then, for
# example because its computer does something else. Such a worker is called a **straggler**. The more workers there are,
# the more often at least one of them is slow.
#
# Choose a network, a link and a batch, and see how many workers are worth having. The exchange may overlap with the
# backward pass, as in lesson 04, or begin after it, as in the cell above:

# %%
from lessons import explore

explore("efficiency")

# %% [markdown]
# **So "some tens of GPUs" is not a rule.** Fewer workers are worth having if the processor is faster and the links stay
# the same. More are worth having if a network computes more for each of its parameters, or if each worker's batch is
# larger. This is why people want large batches, and so it is the reason for all of notebook 06. (The lab of lesson 10,
# notebook 20, measures $\alpha$, $\beta$ and $\gamma$ on a machine like yours, and simulates thousands of such
# workers.)
#
# It has been done, too. Goyal and others (2017) trained ResNet-50 on 8 GPUs and on 256. With 32 times as many GPUs they
# were about 29 times as fast. And remember the other limit: more workers also mean a larger global batch. With 256
# images each, 4,096 workers would have a million images in it. Notebook 05 showed how that can make the learning worse.
#
# A ring is not the only way. In a **tree**, pairs of workers add their gradients, then pairs of pairs, and so on. The
# sum comes back the same way. That takes about $2 \log_2 K$ messages one after the other: 20 instead of 2,046 for 1,024
# workers. But each of them carries the whole gradient. So a tree is better for small gradients and many workers, and a
# ring for large gradients.

# %% [markdown]
# ### Does such a model know real clusters?
#
# We let a model predict clusters that we have never seen. It is the formula above, once for the links inside a host and
# once for those between hosts. The exchange overlaps with the backward pass. The library sends the gradients in groups.
# All workers wait for the slowest. (For the clusters of Goyal and others it takes a tree, as they did.) Published
# numbers go in, above all these: how fast a GPU trains alone, how many weights the network has, and how fast the links
# are. Nothing is fitted. What comes out: the **efficiency** of a cluster, which is the speed of $K$ GPUs divided by $K$
# times the speed of one. We compare it with the efficiency that others have published.
#
# Horovod's authors published the scaling of three networks on up to 512 GPUs. Goyal and others did so for 256 and 352
# GPUs, PyTorch's developers for 16, and the authors of DLPerf for 16 and 32 GPUs with six libraries.
#
# **Guess first.** By how many per cent will the predictions be off, in the median?

# %%
my_guess = None  # a number of per cent, such as 10

# %%
from benchmarks.speed import where_it_pays
from lessons import compare, show

picture = where_it_pays.picture()
show(picture.figure, picture.alt, picture.caption)
compare("clusters", my_guess)

# %% [markdown]
# {{clusters_within}} of {{clusters_count}} predictions are within 20 % of what was published, and half of them are
# within {{clusters_median}} %. Is that good? Somebody who always says "no time is lost" has a median error of
# {{clusters_guess}} %. So the model does much better than this. (A right total does not
# prove that each part is right.) It misses most where something else takes time: reading the images, or a very large layer
# whose gradient is ready last. The page `docs/where_it_pays.md` has all rows, and the source of each constant.

# %% [markdown]
# ## Summary
#
# - With several hosts, the launch command changes. The program stays, if it uses ranks and local ranks rightly.
# - An elastic run goes on without a dead worker. It repeats the updates since the last commit, and leaves out no image.
# - In a ring, the bytes that a worker sends hardly grow with the number of workers. The messages grow, and so does the
#   wait for the slowest worker.
# - How many workers are worth having depends on how long each computes, and on how long the exchange's messages and
#   bytes take.
#
# The lines to keep:
#
# ```python
# messages = 2 * (workers - 1) * latency
# exchange = agreeing + messages + 2 * (workers - 1) / workers * gradient_bytes * byte_time
# share = computing / (computing + exchange)  # of its time, in which a worker computes
# ```
#
# **Still open:** where workers wait too long for a slow link, what can be done? And most new programs use PyTorch's own
# library in place of Horovod. What changes there? That is lesson 10.

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
# <details><summary>Every worker is late now and then. Why does that hurt 1,000 workers more than 10?</summary>
#
# Each update waits for the slowest. If each worker is late once in 1,000 updates, ten workers wait in about one update
# of a hundred. A thousand workers wait in most of them.
#
# </details>
#
# <details><summary>In an elastic run, one of four workers dies 7 updates after the last commit. How many updates are made
# again, and what happens to the images of these 7?</summary>
#
# Seven. The others go back to the commit, in their weights and in the sampler. For the sampler, the images of these 7
# updates are then images that are still to do. It divides them among the workers that are left. So each of them counts
# once in the weights that are kept.
#
# </details>
