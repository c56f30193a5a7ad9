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
# # 19 Lab of lesson 09: a worker dies, and a model is tested
#
# **After this notebook you will be able to** keep a run alive when a worker fails, say what its program must save and
# what a failure costs, and judge a model of the time of a run by clusters that it has not seen.
#
# **Time:** {{minutes_19}} minutes, and about two minutes of waiting on 2 CPU cores. **Builds on:** 06 and 09.
#
# This is a lab. Its runs belong to lesson 09, and no later lesson needs them. Take those that you want to see.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %% [markdown]
# ## A worker is killed
#
# Lesson 09 said what **elastic** training is. After every few updates, each worker copies its state into memory, which
# is called a **commit**. When a worker dies, the others go back to the last commit, and go on without it.
#
# The next cell starts a run with two workers on alpha and two on beta. In the middle of the second epoch it kills
# a worker on beta, without a warning (`kill -9`). This takes one to two minutes. **Before you run it, think:** four
# workers become two. What should happen to the learning rate?

# %%
from lessons import on_two_hosts

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
# ## What is in the program
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
# ## What does a failure cost?
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
# ## Does the model know real clusters?
#
# In lesson 09, a formula said how long an exchange takes. Is it good enough for real clusters? We let it predict
# clusters that we have never seen. Three things are added. Links inside a host are faster than links between hosts. The
# exchange overlaps with the backward pass. All workers wait for the slowest. Only published numbers go in, such as the
# speed of one GPU and of each link. Nothing is fitted.
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

picture = where_it_pays.clusters()
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
#
# ## Summary
#
# - An elastic run goes on without a dead worker. It repeats the updates since the last commit, and leaves out no image.
# - A commit holds the weights, the optimizer's state, and the images that are done.
# - After a failure, the others wait for numbers that do not come. This wait is most of the cost. A host that leaves
#   with a warning costs almost nothing.
# - The rate follows the number of workers only if the program computes it before each update.
# - A model is tested by what it has not seen, and beside the simplest guesses.
#
# ## Questions
#
# <details><summary>In an elastic run, one of four workers dies 7 updates after the last commit. How many updates are made
# again, and what happens to the images of these 7?</summary>
#
# Seven. The others go back to the commit, in their weights and in the sampler. The sampler counts the images of these 7
# updates as not yet done. It divides them among the workers that are left. So each image counts once in the kept
# weights.
#
# </details>
