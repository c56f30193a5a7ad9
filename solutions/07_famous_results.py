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
# change that caused a difference, and make a table that others can check.
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
# (The row without warmup comes from the text beside the table.)
#
# It tells a good story. Eight GPUs ruin the accuracy. Then one technique after another brings it back, until it is
# better than ever. Should you use LAMB tomorrow?
#
# In this notebook you are the referee. You find out what was really measured, and you look at our own runs of the same
# rows. At the end you judge another table alone.

# %%
from lessons import compare, saved
from lessons.cells.plots import rebuilt_table
from lessons.cells.tasks.judge import judge

# %% [markdown]
# ## What do the scripts of the table do?
#
# You have one number for each row. What else do you want to know before you believe the table? Take a minute, and write
# down two questions.
#
# The table comes from an open bootcamp (source S4 in the list of notebook 99). It published its scripts, too. It
# deserves credit for that, because we can check what they did. Every run has 12 epochs, with 512 images a worker.
#
# **Read it as a referee.** In our words, the core of the scripts is this. (Only the LAMB script differs a little.)
# Every worker runs it:
#
# ```python
# set_seed(seed)                     # the same seed on every worker
# order = shuffle(all_images)        # every worker has all images
# for part in range(len(all_images) // (512 * workers)):
#     update(order[512 * part : 512 * (part + 1)])
# ```
#
# Which images do workers 0 and 1 use in the first update? How many updates does one worker make in an epoch? How many
# do eight? Find all three before you read on.
#
# <details><summary>What the loop does</summary>
#
# - **Nobody shards.** All workers shuffle in the same way and take the same images.
# - **An epoch is cut short.** With eight workers the loop makes only an eighth of the updates, as if each worker had a
#   shard.
#
# Here are four of the eight workers:
#
# ![](drawings/same_images.svg)
#
# </details>
#
# Nothing warns the people who start such a run. The loss falls, and all eight GPUs are busy.
#
# The scripts tell three more things:
#
# - **Two rows are one program.** "With batch normalisation" and "with a scaled learning rate and warmup" are the same
#   script. It has all three: batch normalisation, a scaled rate and warmup.
# - **The rows differ by more than their names say.** The baseline has no batch normalisation. The LAMB script has it.
#   The LAMB script also sets no seed, so its workers draw *different* images.
# - **The accuracy is that of training images.** The test images are loaded, and never used. Each row is one run on V100
#   GPUs. A second table, for A100 GPUs, agrees within about a point.
#
# What does the loop mean for the training? Work it out:


# %% exercise="effective_batch"
def effective_batch(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    """The number of different images behind one update."""
    ### BEGIN SOLUTION
    return batch if same_seed and not sharded else workers * batch
    ### END SOLUTION


# %% exercise="updates_made"
from math import ceil


def updates_made(images: int, batch: int, workers: int, epochs: int) -> int:
    """The number of updates in all epochs. Each worker has images // workers images."""
    ### BEGIN SOLUTION
    return epochs * ceil((images // workers) / batch)
    ### END SOLUTION


# %%
# How often does the naive row see each image, in all epochs together? Write your guess down, and run this.
for name, size, sharded in (("one GPU", 1, True), ("naive, on eight", 8, False), ("eight, with shards", 8, True)):
    images = effective_batch(size, 512, sharded, same_seed=True)
    updates = updates_made(50_000, 512, size, 12)
    times = 12 * (images // 512) / size  # a worker uses its part of the images 12 times
    print(f"{name:18}  {updates:5,} updates of up to {images:5,} images. Each image is used {times:4.1f} times.")

# %% [markdown]
# There it is. Eight workers compute the same gradient from the same images. The mean of eight equal gradients is the
# gradient of one. So the naive row trains like **one** GPU that stops after an eighth of its updates. It sees the data
# one and a half times, and not twelve times. (The published scripts drop the rest of an epoch, which is smaller than a
# batch. So they make 1,164 updates with one GPU, and 144 with eight. Our runs keep the rest.)
#
# ## The table, rebuilt
#
# We ran the rows again, and added rows between them. Each row is called an **arm**. For example, in the arm
# `8-same-bn` eight workers use the same images, with batch normalisation. Without `same`, each worker has a shard.
# (`scaled`, `warmup` and `lamb` include batch normalisation, as the scripts do.)
#
# Every arm trains the small ResNet as the table does, for 12 epochs, with 512 images a worker. Our arms use Adam,
# unless the name says another optimizer. We shift and mirror the training images at random (notebook 02). Each arm has
# five runs, with five seeds. The number after $\pm$ is their standard deviation. We measure on test images, after the
# last epoch.
#
# **Guess first.** The published naive row is 27 points below its baseline, on training images. How many points below
# one worker is it in our runs, on test images?

# %%
my_guess = None  # a number of points, such as 1

# %%
runs = rebuilt_table.show_naive()
compare("eight_workers", my_guess)

# %% [markdown]
# So the naive row loses {{c32_naive}} points here, and 27 in the published table. With shards, eight workers lose less.
#
# ### Ask the table yourself
#
# There are more arms, and you have five questions:
#
# 1. What does batch normalisation bring?
# 2. What do shards bring?
# 3. What does an eight times larger rate do, without warmup?
# 4. What does warmup add to this rate?
# 5. What does LAMB bring?
#
# Choose two arms for each question, so that *only one thing* changes between them. One question has no such pair.
# Which? Here are the arms:

# %%
rebuilt_table.arms(runs)

# %% [markdown]
# The next line answers question 1 with two arms. It says what changes, and by how much the accuracy changes. It also
# gives a 95 % interval, as in notebook 05. (With five runs each, it is the difference plus or minus about two and a
# half standard errors.) A change is **seen** if its interval does not contain 0.

# %%
rebuilt_table.answer(runs, 1, "8-base", "8-bn")

# %% [markdown]
# <details><summary>1. Is the gain the same for one worker and for eight?</summary>
#
# `1-base` and `1-bn`: {{c32_bn_one}} points. `8-base` and `8-bn`: {{c32_bn_eight}} points. Is it the workers, or the
# few updates? `8-same-base` and `8-same-bn` act as *one* worker with few updates. There it brings {{c32_bn_same}}
# points. So the few updates are most of the reason.
#
# </details>
#
# Now it is your turn. Write two arms in place of `...`, as in the line above. Write `None` where no two arms tell.

# %%
rebuilt_table.answer(runs, 2, ...)

# %% [markdown]
# <details><summary>2. Why do shards help, if the number of updates is the same?</summary>
#
# `8-same-base` and `8-base`: {{c32_shards}} points. Each gradient now rests on eight times the images.
#
# </details>

# %%
rebuilt_table.answer(runs, 3, ...)
rebuilt_table.answer(runs, 4, ...)

# %% [markdown]
# <details><summary>3 and 4. What do the rate and warmup bring together?</summary>
#
# `8-bn` and `8-scaled`: the rate times eight costs {{c32_scaled}} points. `8-scaled` and `8-warmup`: warmup brings
# {{c32_warmup}} back. So warmup repairs what scaling broke. From `8-bn` to `8-warmup` both change. No difference is
# seen ({{c32_both}} points, {{c32_both_interval}}). The bootcamp's own pair, 53 and 65 %, comes back here: with the
# same images on all workers, warmup brings {{c32_warmup_same}} points.
#
# </details>

# %%
rebuilt_table.answer(runs, 5, ...)

# %% [markdown]
# <details><summary>Answer 5</summary>
#
# No two arms tell. From `8-warmup` to `8-lamb` three things change: the optimizer, the rate and the weight decay. They
# have to. A good rate for Adam is not a good rate for LAMB. We come back to this.
#
# </details>
#
# <details><summary>Why five seeds?</summary>
#
# Chance comes from two sides. The seeds differ from run to run. And 10,000 test images are only a sample: at 75 %, they
# alone give a standard error of 0.4 points. All arms share these images, so a part of this error cancels. The scatter
# between seeds does not cancel.
#
# </details>
#
# ## Where did the naive row lose its points?
#
# Fewer **updates**: is that really all? Here are the same runs, against epochs (left) and against updates (right). If
# only the number of updates matters, two curves lie on each other in the right panel. Which two?

# %%
rebuilt_table.show_updates(runs)

# %% [markdown]
# In the right panel, the line of `8-same-base` lies nearly on the line of `1-base`. We should expect it: eight equal
# gradients are one gradient, so this arm *is* one worker that stops early. (A run is tested after each epoch. So
# `1-base` has only one point in this range, at 98 updates. There the two differ by less than two points.) So in our
# runs, the naive row's {{c32_naive}} points are the price of missing updates. The line of `8-base` lies higher,
# although it makes as few updates. Shards do not bring the updates back. They make each update better, because its
# gradient rests on eight times the images. That is worth {{c32_shards}} points.
#
# So keep two things apart: *how many* updates a run makes, and *how good* each update is. Eight workers always make
# fewer updates in an epoch. Shards only decide whether each of them is better.
#
# ## Published, and run again
#
# Now the other rows of eight GPUs. Our accuracies are not the published ones. Those come from other hardware, from
# training images, and from images that nobody shifted or mirrored. So we compare *steps*: how many points is each row
# above the naive one?
#
# Two rows are one program, so they share a bar of ours. LAMB is not here, because no arm of ours repeats its script.
#
# **Guess:** one published step changes its sign in our runs of the scripts. Which one?

# %%
rebuilt_table.show_steps(runs)

# %% [markdown]
# - **Scaling without warmup.** It gains 9 points in the table, and loses {{c32_scaled_same}} here. So this step changes
#   its sign. (These points are only just seen: the 95 % interval is {{c32_scaled_same_interval}} points. But the gain
#   clearly does not come back.)
# - **Warmup.** From scaling without warmup to scaling with warmup, the table gains 12 points. Our runs gain
#   {{c32_warmup_same}}, so this step comes back. (Here only one thing changes.)
# - **64 and 65 %.** These two rows are one program. Its five runs here have a standard deviation of {{c32_scatter}}
#   points. So a difference of one point says nothing.
#
# A reader of the table sees only the names of the rows. "Eight GPUs with batch normalisation" promises shards, and
# batch normalisation as the only change. That is our arm `8-bn`. It ends at {{c32_eight_bn}} %.
#
# <details><summary>Do training images flatter all rows alike?</summary>
#
# No. `8-same-base` has {{c32_train_naive}} % of its training images right, and {{c32_test_naive}} % of the test images.
# For `1-bn` it is {{c32_train_bn}} % and {{c32_bn}} %. The two numbers move apart as the network learns its training
# images. So a table of training accuracy flatters the rows that have learnt them best.
#
# </details>
#
# ## LAMB beside SGD
#
# How much of the last row is the *optimizer*? Here are four arms. All have eight workers with shards, batch
# normalisation and warmup. Three of them had the same chance: their rate is the best of four.
#
# | arm | optimizer | peak rate | after the warmup |
# | --- | --- | --- | --- |
# | `8-sgd-0.05` | plain SGD | the best of four | the rate falls to zero |
# | `8-clipped-0.4` | SGD, clipped | the best of four | the rate falls to zero |
# | `8-lamb-0.03` | LAMB | the best of four | the rate falls to zero |
# | `8-lamb` | LAMB | a guess | the rate stays |
#
# The gradients of a new network are long, and so are the first steps of plain SGD. **Clipping** makes them shorter: a
# mean gradient that is longer than 1 is cut to the length 1 (Pascanu et al. 2012, arXiv:1211.5063).
#
# **Guess:** which arm ends highest, and which lowest?

# %%
rebuilt_table.lamb_beside_sgd(runs)

# %% [markdown]
# Somebody who wants a headline takes two of these arms. Which two arms give each headline below? What does the losing
# arm lack?
#
# <details><summary>"LAMB is far better than SGD."</summary>
#
# This compares `8-lamb-0.03` with plain SGD. This SGD lacks one line, the clipping.
#
# </details>
#
# <details><summary>"SGD is far better than LAMB."</summary>
#
# This compares clipped SGD with `8-lamb`. This LAMB lacks two things. Nobody searched its rate. And the rate stays high
# until the end, so the weights do not settle (notebook 06). It ends at {{c32_lamb}} %, below the {{c32_base}} % of
# eight workers with shards and no technique at all.
#
# </details>
#
# <details><summary>"Both had the same chance." Which pair is the fairest?</summary>
#
# The fairest pair is `8-clipped-0.4` and `8-lamb-0.03`. Both had four tries. LAMB reaches {{c32_lamb_tuned}} %, and SGD
# reaches {{c32_clipped}} %.
#
# </details>
#
# <details><summary>How were the rates searched?</summary>
#
# All three optimizers had the same warmup, a rate that falls to zero afterwards, and four peak rates. We ran each rate
# with one seed, and took the one with the highest accuracy on test images. Then we ran the chosen rates with all seeds.
# (The lab, notebook 17, shows all rates. Each optimizer keeps its own weight decay, which is not tuned.)
#
# </details>
#
# **Whoever tunes one optimizer, and not the other, can prove anything.**
#
# All numbers of these runs, and how to repeat them:

# %%
_ = saved("C32", verdict=False, figure=False)

# %% [markdown]
# ### Should you use LAMB tomorrow?
#
# Not because of this table. Its 81 % come from training images, and its row differs by more than LAMB. In our runs,
# LAMB is {{c32_tuned}} points ahead of clipped SGD, which was tuned as much. (Nobody tuned Adam, which all other arms
# use.) If every rate fails with your own optimizer because the global batch is so large, try LAMB, and search its rate.
#
# ## What a table needs
#
# You now know what was wrong with one table. What does a good one need? Write your own list first. Ours has six lines.
#
# 1. **One change from row to row.** A row that changes two things tells about neither.
# 2. **Test images, and the last epoch.** Accuracy on training images flatters, and the best of many epochs is partly
#    luck.
# 3. **Several seeds.** Give the mean, the spread and the number of seeds.
# 4. **The number of updates** and the global batch, not only epochs and GPUs.
# 5. **As much tuning for the old as for the new.** Say how many rates were tried for each row.
# 6. **The command** that repeats it.
#
# <details><summary>More on these rules</summary>
#
# - Rule 1: what a technique brings depends on what is there already. Here, shards bring {{c32_shards}} points without
#   batch normalisation, and with it they bring {{c32_shards_bn}}. So for two techniques show four rows: neither, each
#   one alone, and both.
# - Rule 2: choose a rate on validation images, too. (We chose the rates of LAMB and SGD on test images. That was not as
#   good.)
# - Rule 3: say also how many runs failed. And say how many comparisons you made. Of 20 comparisons without any real
#   difference, about one is seen by chance.
# - Rule 3: of ten classes, a run that ends near 10 % has learnt nothing. Look in its log for the update at which the
#   loss jumped, and at the rate there.
# - Rule 4: say of each rate whether it is the rate before scaling or after it.
# - Rule 4: a table of times should give the time to the same accuracy. Twice the images per second save no time if the
#   run needs twice the images. It should also give processors times hours. If this product stays the same with more
#   processors, nothing is lost in all. If it grows, something is lost. Two more numbers say why: the epochs, and the
#   time of an epoch. (One of them can fall while the other grows.)
# - Rule 5: a **speed-up** is the time of one worker divided by the time of several. Ask which program the one worker
#   ran: it must be the best one. A table that begins with eight workers hides what was lost from one to eight. (The
#   **efficiency** is the speed-up divided by the number of workers: notebook 09. If a table begins with
#   eight workers, divide the speed-up of 64 workers by 64/8.)
# - Rule 5: to rebuild somebody's result, first try to reach their baseline. If you cannot, say so, and compare only the
#   order and the steps. (So did we.)
# - A good example is the race to train ResNet-50 on ImageNet, from an hour on 256 GPUs in 2017 to 75 seconds on 2,048
#   GPUs in 2019 (notebook 09). There is one fixed goal, on images that were not trained on. The processors, the batch
#   and the recipe are given. One thing stays hidden: how many rates were tried.
#
# </details>
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
# | D | NewOpt | 8 | 1,024 | 20 | not given | 40 | test images | the best | 1 | 79.2 % |
#
# Its authors draw three conclusions. For each one, compare its two rows. Which of the rules 1 to 5 are broken?
#
# - Rule 1: is anything else different in the training?
# - Rules 2, 3 and 5: how were the two accuracies chosen and measured?
# - Rule 4: does the table give the number of updates?
#
# Write the numbers of the rules as a list into the calls. For example, `judge(2, [3])` would say that conclusion 2
# breaks rule 3 and no other. A rule is also broken if both rows break it.
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
# Forty rates for both would also be fair.
#
# </details>
#
# <details><summary>Is there one sentence about the published table above that you would still sign?</summary>
#
# Yes: with the same images on all workers, the script with warmup ends higher on training images than the script
# without. By the bootcamp's text, the two differ by one thing. The gap is twelve points, and our runs agree. But the
# table alone has one seed.
#
# </details>
#
# ## Summary
#
# - Eight workers that average equal gradients are one worker. Nothing warns you.
# - In our runs, the drop from one GPU to eight is the price of fewer updates. Shards bring a part of the points back.
# - Two rows came from one program. So a point of difference means nothing.
# - One change at a time, with several seeds, is slow. But it tells which change does what.
#
# The lines to keep:
#
# ```python
# difference = mean(a) - mean(b)  # over several seeds, on test images, at the last epoch
# error = (variance(a) / len(a) + variance(b) / len(b)) ** 0.5  # of the difference
# seen = abs(difference) > 2.5 * error  # for about five seeds; with many, 2 is enough
# ```
#
# ## Questions
#
# <details><summary>Two rows of the table, 64 and 65 %, are runs of the same program. What do they tell you?</summary>
#
# Very little. Rounding and chance can make a point. Both runs have the same seed, so they differ only by what a GPU
# does not repeat exactly. Other seeds would differ more. One pair cannot tell how much.
#
# </details>
#
# <details><summary>You are given a script whose workers all use one seed and do not shard. How do you notice from its
# output alone?</summary>
#
# The workers' losses, before they are averaged, agree to many digits. (Rounding may differ in the last ones.) And with
# more workers, only the number of updates changes.
#
# </details>
#
# <details><summary>Why is it not enough to use different seeds, without sharding?</summary>
#
# Each worker then draws its own shuffle of all images. The gradient rests on different images, so averaging helps. But
# in an epoch some images are used several times. Others are not used at all. (The lab of lesson 03 measures how many.)
#
# </details>
