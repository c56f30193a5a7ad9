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
# # 07 Famous results re-examined
#
# **After this notebook you will be able to** say what a table of results shows and what it does not show, find the
# change that a difference belongs to, and make a table that others can check.
#
# **Time:** about {{minutes_07}} minutes, and no waiting: all runs of this notebook are saved. **Builds on:** all
# notebooks so far, 05 and 06 above all.
#
# A public course on distributed deep learning prints this table. A small ResNet is trained on CIFAR-10, and the numbers
# are accuracies:
#
# | what | GPUs | accuracy |
# | --- | --- | --- |
# | baseline | 1 | 71 % |
# | naive: the same script on eight GPUs | 8 | 44 % |
# | with batch normalisation | 8 | 64 % |
# | with a scaled learning rate, no warmup | 8 | 53 % |
# | with a scaled learning rate and warmup | 8 | 65 % |
# | with LAMB | 8 | 81 % |
#
# It tells a good story. Eight GPUs ruin the accuracy. Then one technique after another brings it back, until it is
# better than ever. Should you use LAMB tomorrow?
#
# In this notebook you are the referee. You find out what was really measured, and you look at our own runs of the same
# rows. At the end you judge another table alone.

# %%
from lessons import compare, saved
from lessons.cells import rebuilt_table
from lessons.cells.judge import judge

# %% [markdown]
# ## First, results that others could repeat
#
# How fast can ResNet-50 learn ImageNet? For some years this was a race. The goal was always the same: about 75 or 76 %
# of the validation images right, after some 90 epochs. The numbers below are the authors' own.
#
# | year | processors | global batch | time | published in |
# | --- | --- | --- | --- | --- |
# | | 1 M40 GPU | | 14 days | as told by You et al. 2017, arXiv:1709.05011 |
# | 2017 | 256 P100 GPUs | 8,192 | 1 hour | Goyal et al., arXiv:1706.02677 |
# | 2017 | 2,048 KNL CPUs | 32,768 | 20 minutes | You et al., arXiv:1709.05011 |
# | 2017 | 1,024 P100 GPUs | 32,768 | 15 minutes | Akiba et al., arXiv:1711.04325 |
# | 2018 | 2,048 P40 GPUs | 65,536 | 6.6 minutes | Jia et al., arXiv:1807.11205 |
# | 2018 | 1,024 TPU v3 chips | 32,768 | 2.2 minutes | Ying et al., arXiv:1811.06992 |
# | 2019 | 2,048 V100 GPUs | 81,920 | 74.7 seconds | Yamazaki et al., arXiv:1903.12650 |

# %%
rebuilt_table.show_records()

# %% [markdown]
# You know most of what these records needed. Goyal et al. scaled the rate and warmed it up. You et al. gave each layer
# a rate of its own (LARS). Jia et al. computed with half-precision numbers, so there was less to send. Only the point
# of You et al. lies above the line: their processors were CPUs. All of them kept a similar batch for each processor, so
# the global batch grew with the processors. The critical batch size (notebook 05) limits how far this can go.
#
# Other groups could repeat these results, and the reason is simple. There is **one fixed goal** on images that were not
# trained on. The batch and the processors are named. The recipe is in the paper. A record does hide how many rates were
# tried. But nobody has to guess what was measured.
#
# ### Two numbers for time
#
# The **speed-up** is the time of one worker divided by the time of several. The **efficiency** is the speed-up divided
# by the number of workers. An example: one worker needs 60 minutes, and four workers need 20. The speed-up is 3, and
# the efficiency is 75 %. What a run costs is the number of workers times the time. So the four workers cost 80 minutes
# of a GPU in place of 60. They are worth it if you would rather pay than wait.
#
# If four workers are *more* than four times as fast, look for the reason before you believe it. Was the one worker
# slowed down, by reading its images or by too few threads? Did the four do less work?
#
# ## What do the scripts of the table do?
#
# Back to the table. It comes from an open bootcamp (source S4 in the list of notebook 99). Each row is the training
# accuracy after 12 epochs with 512 images a worker, on V100 GPUs. The bootcamp has another such table for A100 GPUs,
# and each row is within about a point of this one. (The row without warmup is told in the bootcamp's text, and not in
# its table.) The bootcamp published its scripts with the numbers. It deserves credit for that, because we can check
# what they did.
#
# Take a minute before you read on. You have one number a row. What would you want to know?
#
# We read the scripts line by line, as you did in notebook 04. This is what they do:
#
# 1. **Nobody shards.** No worker takes a part of the data. In four of the five scripts all workers also use the same
#    random seed.
# 2. **An epoch is cut short.** Each worker has all the data, but it makes only an eighth of the updates, as if it had a
#    shard. With one GPU, 12 epochs are 1,164 updates. With eight, they are 144.
# 3. **Two rows are one program.** "With batch normalisation" and "with a scaled learning rate and warmup" are runs of
#    the same script. It has all three: batch normalisation, a scaled rate and warmup.
# 4. **The rows differ by more than their names say.** The baseline has no batch normalisation, and the LAMB row has it.
#    The LAMB script also sets no seed, so its workers draw *different* images.
# 5. **The accuracy is that of training images**, and there is one run of each row on each kind of GPU. The test images
#    are loaded, and not used.
#
# What do the first two mean together? Work it out:


# %% exercise="effective_batch"
def effective_batch(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    """How many different images the mean gradient of one update rests on."""
    ### BEGIN SOLUTION
    return batch if same_seed and not sharded else workers * batch
    ### END SOLUTION


# %% exercise="updates_made"
def updates_made(images: int, batch: int, workers: int, epochs: int) -> int:
    """Updates in so many epochs when each worker has images // workers images."""
    ### BEGIN SOLUTION
    return epochs * -(-(images // workers) // batch)  # rounded up
    ### END SOLUTION


# %%
for name, size, sharded in (("one GPU", 1, True), ("eight, as published", 8, False), ("eight, sharded", 8, True)):
    batch = effective_batch(size, 512, sharded, same_seed=True)
    updates = updates_made(50_000, 512, size, 12)
    passes = 12 * (50_000 // size) * (batch // 512) / 50_000
    print(f"{name:20} {updates:5,} updates, up to {batch:5,} images each: {passes:4.1f} passes over the data")

# %% [markdown]
# (You count the last, smaller batch of an epoch, and the published scripts leave it out. So your updates are a few
# more.)
#
# There it is. Eight workers compute the same gradient from the same images, and its mean is the gradient of one. So the
# eight GPUs of the naive row did the training of **one** GPU that stops after an eighth of its updates. It has seen the
# data one and a half times, and not twelve times. Here are four of the eight:
#
# ![](drawings/same_images.svg)
#
# Nothing warns you: the loss falls, and all eight GPUs are busy.
#
# ## The table, rebuilt
#
# We ran the rows again, and more rows between them. Each of them is called an **arm**. An arm's name says how many
# workers there are, then `same` if all use the same images, then the technique. All arms train the small ResNet for 12
# epochs, with 50,000 images and 512 a worker. We ran each arm with five seeds, and $\pm$ is the standard deviation over
# the five runs. Everything is measured on test images, after the last epoch.
#
# **Guess first.** Eight workers train as in the naive row: all use the same images, and they make an eighth of one
# worker's updates. The published table says 27 points less, on training images, after one run. By how many points are
# they worse in our runs, on test images?

# %%
my_guess = None  # a number of points, such as 1

# %%
runs = saved("C32").runs
compare("eight_workers", my_guess)

# %% [markdown]
# Each bar shows what one change does to the accuracy. Only the bar of LAMB has several changes, as its name says. The
# next cell lists all arms:

# %%
rebuilt_table.arms(runs)

# %% [markdown]
# ### Ask the table yourself
#
# The next line compares two arms. It says what changes from the first to the second, and how the accuracy changes. It
# also gives a 95 % interval. With five runs of each arm, this is the difference, plus or minus about two and a half
# times its standard error (Welch's t-test). A change is **seen** if its interval does not contain 0.

# %%
rebuilt_table.what_changes(runs, "8-base", "8-bn")

# %% [markdown]
# Change the two names, and answer these four questions. (The figure and the table of all arms have the names.) Choose
# the arms so that *only one thing* changes. One question has no such pair. Which?
#
# <details><summary>What does batch normalisation bring to one worker, and what to eight?</summary>
#
# `1-base` and `1-bn`: {{c32_bn_one}} points. `8-base` and `8-bn`: {{c32_bn_eight}} points. With the same images on all
# workers, from `8-same-base` to `8-same-bn`, it brings {{c32_bn_same}}. There the eight act as *one* worker that stops
# after an eighth of the updates. So it is mostly the few updates that need it, and not the workers.
#
# </details>
#
# <details><summary>What do shards bring?</summary>
#
# `8-same-base` and `8-base`: {{c32_shards}} points. The number of updates is the same. But each gradient now rests on
# eight times the images.
#
# </details>
#
# <details><summary>What does a rate times eight do, and what does warmup do after that?</summary>
#
# `8-bn` and `8-scaled`: it costs {{c32_scaled}} points. `8-scaled` and `8-warmup`: warmup brings {{c32_warmup}} back.
# From `8-bn` to `8-warmup` both change, and the accuracy changes by {{c32_both}} points ({{c32_both_interval}}), and no
# difference is seen. So warmup repairs what scaling broke. The bootcamp's own pair, 53 and 65 %, is real: with the same
# images on all workers, warmup brings {{c32_warmup_same}} points here.
#
# </details>
#
# <details><summary>What does LAMB bring?</summary>
#
# No two arms tell it. From `8-warmup` to `8-lamb` the optimizer changes, and so do the rate and the weight decay: a
# good rate for Adam is not a good rate for LAMB. We come back to this.
#
# </details>
#
# ### Where does the chance come from?
#
# Chance comes from two sides. The seeds differ, and there are only 10,000 test images. If a share $p$ of $n$ images is
# right, the standard error is $\sqrt{p (1-p) / n}$. For 75 % of 10,000 images this is 0.4 points. Both arms are tested
# on the same images, so a part of this error cancels in their difference. The scatter between seeds does not cancel, so
# it has to be measured. That is why each arm has five seeds.
#
# ## Where did the naive row lose its points?
#
# Eight workers with the same images are one worker that makes fewer **updates**. Is that really all? Look at the same
# runs against epochs (left) and against updates (right). If the number of updates explains a difference, then the two
# curves lie on each other in the right panel.

# %%
rebuilt_table.show_updates(runs)

# %% [markdown]
# **The drop of the naive row.** Eight workers as published end {{c32_naive}} points below one. They are one worker that
# stops after an eighth of its updates, so all of these points are the price of missing updates. Shards do not bring the
# updates back. They make each update better, because its gradient rests on eight times the images. That is worth
# {{c32_shards}} points.
#
# See the right panel. At the same number of updates, the line of `8-same-base` lies nearly on the line of `1-base`. The
# line of `8-base` lies higher, because of its shards.
#
# ## Published and rebuilt, side by side
#
# Each published row now has two of our arms beside it: the arm that does what the published *script* does, and the arm
# that does what the row's *name* says. (For LAMB, the name says nothing of a rate. Our script's rate was not searched
# for. The next section does that.)

# %%
rebuilt_table.published_beside_rebuilt(runs)

# %% [markdown]
# Be fair when you compare the columns. The published numbers come from other hardware and from training images. Ours
# also shift and mirror the training images, and the published scripts do not. So do not ask for the same numbers. Ask
# two things. Does the *order* of the rows come back, and the size of the steps?
#
# The answers:
#
# - **From naive to scaling and warmup.** The table has 21 points more. Our runs of the scripts have
#   {{c32_techniques_same}}. The order comes back, with about half of the step. (Batch normalisation is part of this
#   step.)
# - **From naive to scaling without warmup.** The table has 9 points more on training images. Here it is
#   {{c32_scaled_same}} points less. So this order does not come back.
# - **64 and 65 %.** These two rows are one program, and its five runs have a standard deviation of {{c32_scatter}}
#   points here. A difference of one point between them means nothing.
#
# The published LAMB row has no arm: its workers drew different images without shards, at Adam's base rate. Our `8-lamb`
# does what our script `cifar_lamb.py` does.
#
# **Training images or test images?** Our arm `8-same-base` has {{c32_train_naive}} % of its training images right, and
# {{c32_test_naive}} % of the test images. For `1-bn` it is {{c32_train_bn}} % and {{c32_bn}} %. So the two are close
# while little has been learnt, and they move apart as the network learns its training images. A table of training
# accuracy flatters the rows that have learnt them best.
#
# ## LAMB beside SGD, both tuned
#
# The last row of the published table is its most striking. How much of it is the *optimizer*? To find out, all else has
# to be equal, and both optimizers need the same chance. So we take the same eight workers, the same warmup and linear
# decay, and four peak rates for each. (Each keeps a weight decay of its own, which is not tuned.)
#
# SGD is here twice. `8-sgd-0.05` has a tuned peak rate, warmup and decay. `8-clipped-0.4` also has its gradient
# **clipped**: if the norm of the mean gradient is above 1, the gradient is scaled down to 1 (Pascanu et al. 2012,
# arXiv:1211.5063). Why? LAMB's step is a share of each layer's weights, however large the gradient is. SGD's step is as
# large as the gradient, and the gradients of a new network are large.
#
# One seed chose each optimizer's rate, by its accuracy on the test images. So the choice is partly luck. Then the
# chosen rates were run with all seeds.

# %%
rebuilt_table.show_rates(runs)
rebuilt_table.lamb_beside_sgd(runs)

# %% [markdown]
# Read the three rows one after the other. With the first row alone you could write that LAMB is far better than SGD.
# But there SGD lacks one line, the clipping. (Without it, SGD even ends below Adam at its usual rate, `8-bn`.) With the
# last row alone you could write that SGD is far better than LAMB. But there nobody searched LAMB's rate. **Whoever
# takes care of one optimizer, and takes the other as it comes, can prove anything.** The second row is the fairest of
# the three: {{c32_lamb_tuned}} % for LAMB, and {{c32_clipped}} % for SGD with clipped gradients.
#
# It is not the last word either. Nado et al. 2021 (arXiv:2102.06356) made this comparison on the benchmarks by which
# LARS and LAMB had become known. They tuned more: momentum, the length of the warmup, weight decay, label smoothing,
# and for all optimizers. They found that SGD with Nesterov momentum and Adam get as far. So we do not know whether more
# tuning would close the rest of the distance here.
#
# **LAMB** as our script has it ends at {{c32_lamb}} %, below the {{c32_base}} % of eight workers with shards and no
# technique at all. Its scaled rate never falls (notebook 06).
#
# Look at the bars in the figure, too. The rate 0.05 of SGD has by far the longest. In the one run that chose it (the
# cross), it was the best of the four. Another of its five seeds ends several points lower, and pulls the mean down by
# about one. Choosing by one run is cheap. A mean over five seeds would have shown the risk, at five times the price.
#
# **The end of the story.** One worker with batch normalisation reaches {{c32_bn}} %. Eight workers with tuned LAMB, who
# make an eighth of the updates, reach {{c32_lamb_tuned}} %. The difference is {{c32_end}} points
# ({{c32_end_interval}}), and no difference is seen. So a good recipe can make up for seven eighths of the updates. But
# it does not show that eight workers are as good as one: LAMB's rate was searched for, and it had a decay. The one
# worker had neither.
#
# **Should you use LAMB tomorrow?** Not because of this table. Its 81 % come from training images, and its row differs
# from the others by more than LAMB. In our runs LAMB is {{c32_tuned}} points ahead of SGD that was tuned as much, and
# nobody tuned Adam. If your global batch has become too large for your own optimizer at every rate, try LAMB, and
# search its rate.
#
# ## What a table needs
#
# 1. **One change from row to row.** What a technique brings depends on what is there already. Here, shards bring
#    {{c32_shards}} points without batch normalisation, and with it they bring {{c32_shards_bn}}. So for two techniques
#    show four rows: neither, each one alone, and both.
# 2. **Test images, and the last epoch**, not the best one. The best of many epochs is partly luck.
# 3. **Several seeds**, with mean *and* spread, and how many.
# 4. **The number of updates** and the global batch, not only epochs and GPUs.
# 5. **As much tuning for the old as for the new.**
# 6. The command that repeats it.
#
# ### Now you are the referee
#
# Here is a table that we invented. All rows train the same network on the same images, with 128 images for each worker.
#
# | row | optimizer | workers | global batch | epochs | updates | rates tried | accuracy on | epoch | seeds | accuracy |
# | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
# | A | SGD | 1 | 128 | 10 | 3,910 | 4 | test images | the last | 5 | 78.0 ± 0.4 % |
# | B | SGD | 8 | 1,024 | 10 | 490 | 4 | test images | the last | 5 | 70.1 ± 0.6 % |
# | C | NewOpt | 8 | 1,024 | 10 | 490 | 40 | test images | the best | 1 | 74.9 % |
# | D | NewOpt | 8 | 1,024 | 20 | 980 | 40 | test images | the best | 1 | 79.2 % |
#
# Its authors draw three conclusions. Compare the two rows of each conclusion. Rule 1 asks what else is different in the
# training. Rules 2, 3 and 5 ask how the two accuracies were chosen and measured. Rule 4 asks whether the table gives
# the number of updates. Which of the rules 1 to 5 are broken? Write their numbers into the calls. For example,
# `judge(1, [3, 4])` says that conclusion 1 breaks the rules 3 and 4.
#
# - Conclusion 1: row C is better than row B because NewOpt is the better optimizer.
# - Conclusion 2: row D is better than row C because it trains longer.
# - Conclusion 3: row D shows that eight workers with NewOpt are better than one worker with SGD.

# %%
judge(1)
judge(2)
judge(3)

# %% [markdown]
# <details><summary>Which one experiment would you ask the authors for?</summary>
#
# Row B and row C again, both with four rates, five seeds and the last epoch. That makes conclusion 1 a fair question.
# With the same number of trials for both, forty would do as well.
#
# </details>
#
# <details><summary>Is there one sentence about the published table above that you would still sign?</summary>
#
# Yes: with the same images on all workers, the script with a scaled rate and warmup ends higher on training images than
# the same script without warmup. The two rows differ by one thing, as far as its text says, and by twelve points. Our
# own runs agree. But the table alone has one seed.
#
# </details>
#
# ## Summary
#
# - Eight workers that average equal gradients are one worker. The loss falls, and nothing warns you.
# - The published drop from one GPU to eight is the price of fewer updates. With shards, a part of it comes back.
# - Two rows of the table came from one program: their difference is noise.
# - To change one factor at a time, with several seeds, is slow. But it tells which factor does what.
#
# The lines to keep:
#
# ```python
# difference = mean(a) - mean(b)  # over several seeds, on test images, at the last epoch
# error = (variance(a) / len(a) + variance(b) / len(b)) ** 0.5  # of the difference
# speed_up = seconds_of_one / seconds_of_several
# efficiency = speed_up / workers
# ```
#
# ## Questions
#
# <details><summary>Two rows of the table, 64 and 65 %, are runs of the same program. What do they tell you?</summary>
#
# Less than one would like. A difference of a point can come from chance alone, and rounding can make most of it. Both
# runs have the same seed, so they differ only by what a GPU does not repeat exactly. Other seeds would differ more; how
# much, one pair does not tell. So no difference of about a point in this table means anything, and larger ones need
# more seeds.
#
# </details>
#
# <details><summary>You are given a script whose workers all use one seed and do not shard. How do you notice from its
# output alone?</summary>
#
# The workers' losses, before they are averaged, agree to many digits. (Rounding may differ in the last ones.) And with
# more workers nothing changes but the number of updates.
#
# </details>
#
# <details><summary>Why is it not enough to use different seeds, without sharding?</summary>
#
# Each worker then draws its own shuffle of all images. The gradient rests on different images, so averaging helps; but
# in an epoch some images are used several times and others not at all (the lab of lesson 03 measures how many).
#
# </details>
