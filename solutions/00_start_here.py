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
# # 00 Start here
#
# **After this notebook you will be able to** say what this course covers and in which order, what your machine can do,
# and start four workers that train one network together.
#
# **Time:** about {{minutes_00}} minutes on 2 CPU cores. **Builds on:** Python, and having trained some network before.
#
# ## A case
#
# Training a network on one processor is slow. So you start four **workers**. A worker is a process. If the machine has
# enough processors, each worker has one of its own. Each has a copy of the network, and its own quarter of the images,
# its **shard**. After every **batch** of a few dozen images they average their gradients, and each of them changes its
# weights by the same average. This is one **update**. They should start with equal weights, so that all four stay
# equal. This is called **data parallelism**. That is the plan.
#
# Every log looks healthy. The loss falls. No error is printed. All four processors are busy. And in the end the network
# is *worse* than the one that a single worker trained. Nobody has changed the network or the images, and each image was
# used as often as before. The next cell draws such runs: the accuracy on test images after each **epoch**. An epoch is
# one pass over all training images. We made these runs before, and saved them.

# %%
from lessons import show_case

show_case()

# %% [markdown]
# Who did it? Was it only bad luck? This can be examined at once. Suppose that both kinds of runs are equally good, and
# that only luck decides which run ends higher.
#
# - *One run of each kind.* One of the two runs ends higher. The chance that it is the one worker's is 1/2.
# - *Two runs of each kind.* Two of the four runs are the best two. There are six pairs that this can be, and luck makes
#   all six equally likely. One of them is the pair of the one worker. The chance is 1/6.
#
# The picture has five runs of each kind. **Guess:** how likely is it that luck puts all five runs of the one worker
# above all five of the four workers? And how many runs of each kind would you want to see, before you stop believing in
# luck?

# %%
from math import comb

for runs in (1, 2, 3, 4, 5):
    ways = comb(2 * runs, runs)  # to choose which of all runs are the better half
    print(f"{runs} of each: {ways:3} ways to choose the better half, so the chance is {1 / ways:.1%}")

# %% [markdown]
# In one of 252 ways, the best five are exactly those of one worker. So the chance is 0.4 %. Is it so in the picture?
# Look at the ends of the lines. We do not believe in such luck, so it was something else. (With one run of each kind,
# nobody can tell. With three of each, the chance is still 5 %.)
#
# Before you look for the culprit, see what four workers do on your own machine.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 2, 4096, 0, "auto"

# %% [markdown]
# ## Your machine
#
# Nothing here needs a GPU. If you have one, one worker uses it. (Several workers use GPUs only if the installation,
# `make course`, has found NVIDIA's compiler. Otherwise they stay on the CPU.)

# %%
import psutil
import torch

from cifar.support.environment import cores

gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
print("CPU cores:", cores())
print(f"memory: {psutil.virtual_memory().total / 2**30:.0f} GiB")
print("GPUs:", gpus or "none")

# %% [markdown]
# Each worker has a copy of the program and of the network, so four workers need four times the memory of one. If the
# memory is too small, the system becomes very slow, or it ends a worker. With fewer cores than workers the workers take
# turns. Then a run takes longer, but it computes the same gradients and weights.
#
# <details><summary>What to do if something fails</summary>
#
# - *Very slow:* close other programs. Four workers on two cores leave nothing for anybody else.
# - *A run hangs:* interrupt the cell (the square button). The workers are ended with it.
# - *CIFAR-10 is missing:* `python -m cifar.download` fetches it, and says what is wrong if it cannot.
#
# </details>

# %% [markdown]
# ## Four workers, one network
#
# Now start four workers yourself. This is what they do in one update. (The **all-reduce** is the exchange after which
# each worker has the mean of all gradients.)
#
# ![](drawings/one_update.svg)
#
# **Horovod** is a library that carries numbers between workers, and averages their gradients. Its command `horovodrun`
# starts the processes. Each runs the same script, `source_code/cifar_base.py`, and finds out from Horovod which one it
# is and how many there are. A worker's number is called its **rank**, from 0 on. The number of workers is the **size**.
#
# The images are CIFAR-10 (Krizhevsky 2009): 50,000 small training images of ten kinds of things, and 10,000 test
# images. To be quick we use the first few thousand of each. The script shifts and mirrors each training image at
# random, and each worker does so in its own way.
#
# In the picture below the cell, each worker has a row of boxes. Time goes from left to right, and all boxes of a
# picture last equally long. The colour of a box says what the worker did at this moment. A striped box means that it
# waited for the others. **Before you run the cell, guess:** how many per cent of the test images will be
# right after such a short run? Somebody who guesses among ten kinds has 10 %.

# %%
from lessons import horovodrun

lines = horovodrun("cifar_base.py", workers, epochs=epochs + 2, images=images, batch_size=64, seed=seed, device=device)

# %% [markdown]
# The first line of the output, behind the `$`, is what you would type in a terminal. The run was short, so the accuracy
# is low.
#
# What happened? Four processes each saw a quarter of the images. After every batch they averaged their gradients, and
# each changed its weights with the average. So every worker must take part in each update, and the faster ones wait for
# the slowest. At the end all four held the same network, and one of them wrote it down.
#
# The rows show different losses, although the networks are equal. Each is the loss of one worker's own last batch. The
# training loss in the printed lines is the mean over a whole epoch and all workers.
#
# <details><summary>What if one worker fails?</summary>
#
# The others cannot make the next update, and the launcher ends them all. The number of workers is fixed at the start.
# (Lesson 09 says how a run can go on.)
#
# </details>
#
# Now the same with *two* workers. Everything else is as before. **Guess:** how many updates do they make?

# %%
lines = horovodrun("cifar_base.py", 2, epochs=epochs + 2, images=images, batch_size=64, seed=seed, device=device)

# %% [markdown]
# Twice as many. An update of four workers uses 4 × 64 = 256 images, and an update of two uses 128. So an epoch of the
# same images has twice as many updates. (Which of the two networks is more accurate, such a short run cannot tell.)
#
# Compare the seconds of an epoch, too. Were four workers faster than two? Only if each had a core of its own. On two
# cores, four workers take turns, and they also have more to exchange.
#
# ## The suspects
#
# Now back to the case. Four workers trained a worse network. Who did it? Here are the suspects:
#
# | suspect | what may have happened | examined in |
# | --- | --- | --- |
# | the measurement | only one worker's test images were counted (luck is cleared already) | 04 |
# | the average | the mean of gradients loses information, or the program took the sum in its place | 03 and its lab |
# | the data | all workers saw the same images | 04, 05 |
# | the start | the workers began with different weights | 04 |
# | the batch | an update uses the images of four workers, and that may be too many | 05 |
# | the rate | the learning rate does not fit the larger batch | 05, 06 |
# | the normalisation | batch normalisation, which uses means over the batch, sees one worker's images only | 06 |
#
# Two things that you know may help. The case says that each image was used as often as before. And you have seen how
# many updates four workers make, and how many two.
#
# **Now it is your turn.** Whom do you suspect? Write it into the next cell, in the words of the table. Then think of an
# experiment. What would you change, and what should come out if your suspect did it? Write this into the cell as well,
# in a sentence. The cell then shows an experiment of ours beside yours. You get the verdict in notebook 05.

# %%
from lessons import accuse

my_suspect = None  # such as "the average"
my_experiment = None  # a sentence in quotation marks
accuse(my_suspect, my_experiment)

# %% [markdown]
# Each lesson takes up some of the suspects, and clears or convicts them by an experiment. In lesson 07 you examine a
# published table in which several of them were at work at once. In lesson 08 you write a program for four workers that
# gets everything right, and a grader watches what your workers really do. Lesson 09 goes from one computer to several,
# and lesson 10 shows what you will meet at work.
#
# **Why a command, and not a function?** A notebook is one process, and a function that you call runs inside it. Workers
# are processes of their own. So each run with several workers starts with a command such as the one above.
#
# ## The map
#
# ![](drawings/course_map.svg)
#
# <details><summary>All notebooks, their minutes, and what you learn in each</summary>
#
# | | notebook | minutes | you learn |
# | --- | --- | --- | --- |
# | 01 | Gradient descent and noise | {{minutes_01}} | why a batch's gradient is noisy, and how much |
# | 02 | One worker | {{minutes_02}} | a training program, line by line: where its time and memory go |
# | 03 | Data parallelism by hand | {{minutes_03}} | a parameter server, and a ring all-reduce by your own plan |
# | 04 | Horovod | {{minutes_04}} | the few lines that turn one worker into many, and what happens without them |
# | 05 | Why it converges worse | {{minutes_05}} | epochs against updates, rates, and the critical batch size |
# | 06 | Techniques | {{minutes_06}} | batch norm, scaled rates, warmup, a search for the rate, LAMB |
# | 07 | Famous results re-examined | {{minutes_07}} | a published table, rebuilt one factor at a time |
# | 08 | Assignment | 90 | your own four-worker program, graded by what its workers do |
# | 09 | Beyond one machine | {{minutes_09}} | several hosts, what a failure costs, and how many workers pay |
# | 10 | What comes next | {{minutes_10}} | PyTorch's own DDP, techniques for slow links, and larger networks |
# | 11 to 17, 19, 20 | Labs of lessons 01 to 07, 09 and 10 | | more experiments, for those who want to see them |
# | 98 | Glossary | | every term, with the lesson that explains it |
# | 99 | References | | every source, once |
#
# </details>
#
# Go through them in order the first time: each uses the words of those before it. You average by hand before you use
# Horovod, so that you know what it does for you. And you see the causes before the techniques, so that you know when to
# use which. The minutes are estimated from the words, the code and the exercises.
#
# This course says only what it can show. For each claim, you see the result of a full experiment on test images. It
# comes with the spread over several runs, the machine, and the command that repeats the experiment. Many of them you
# also run yourself, small. The claims come from public discussions, courses and papers, which lesson 99 lists.
#
# ## Why Horovod?
#
# Horovod's last release is 0.28.1, of June 2023. Little has been added to it since, and this course changes a few lines
# of it so that it works with today's PyTorch. New programs use PyTorch's own `DistributedDataParallel` (**DDP**). For
# networks that do not fit on one GPU, PyTorch has FSDP, which divides the weights among the workers. Lesson 10 shows
# DDP, and its lab shows FSDP.
#
# We teach with Horovod because it hides little. A few lines turn a program for one worker into one for many, and each
# line stands for one decision. The decisions are the same in DDP, and there most of them are made for you.
#
# ## Summary
#
# - A worker is a process with a copy of the network; data parallelism means that each uses its shard of the data, and
#   all apply the mean gradient.
# - The rank says which worker this is, and the size says how many there are.
# - The course shows its claims with saved results. You repeat many of them yourself, in a small version.
#
# **Still open:** who did it? To judge the batch, one has to know what a batch tells about all images. That is notebook
# 01.
#
# ## Questions
#
# <details><summary>Two workers with 64 images each make 48 updates. How can four workers make 48 updates with the same
# images?</summary>
#
# With 32 images each. Then an update has 4 × 32 = 128 images again. The images of all workers in one update are called
# the **global batch**.
#
# </details>
#
# <details><summary>The four workers shift and mirror their images by different random numbers, but hold equal networks.
# Why?</summary>
#
# Before the first update, worker 0 sends its weights to all others. From then on all apply the same mean gradient to
# the same weights.
#
# </details>
