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
# # 08 Assignment: four workers, one network
#
# **After this notebook you will have** turned a program for one worker into one for four, and have it graded by what
# its workers do. **Time:** an hour or two of thinking. On 2 CPU cores a fast check takes about half a minute. A full
# check takes 3 to 7 minutes, and longer on an older processor. **Builds on:** notebooks 03 to 06.
#
# ## The task
#
# The starter trains one network, a ResNet-9, on one worker, in plain PyTorch. Make four workers train **one** network
# with Horovod. If you do it right, each worker computes on a quarter of the images, all four hold equal weights after
# every update, and the network reaches a target on test images that your program never sees.
#
# A grader starts your program with four workers and watches what they do. It judges what it sees, and it does not
# believe what your program prints.
#
# ![](drawings/what_the_grader_sees.svg)

# %% tags=["parameters"]
folder, profile = "my_assignment", "fast"

# %% [markdown]
# This copies the starter into a folder of your own, next to this notebook, once. Then open `train.py` there in the
# editor (in JupyterLab: the file browser on the left) and change it. The notebook leaves your file as it is.

# %%
from lessons.cells.assignment import begin

program = begin(folder)
print(f"your program: {program}")
print(program.read_text())

# %% [markdown]
# ## A way to get there
#
# Take one step at a time, and look whether you see what you should.
#
# 1. **Start four workers.** Start Horovod, and take the device that belongs to this worker. Give the random distortions
#    of each worker a seed of their own. (The shuffle keeps the common seed.) *You should see:* four processes that all
#    train by themselves.
# 2. **Make them one.** Send worker 0's weights to all, and wrap the optimizer, so that all workers apply the mean
#    gradient. *You should see:* equal weights on all workers, after every update.
# 3. **Divide the images.** Give each worker its shard of one shuffle, equally many images each. Why equally many? A
#    worker with one batch more waits in an exchange to which no other worker comes. *You should see:* an epoch has a
#    quarter of the updates.
# 4. **Choose the rate.** The base rate is meant for one worker. Scale it by the number of workers, warm it up over
#    about a fifth of the updates, and keep the starter's decay. Remember that four workers make a quarter of the
#    updates in an epoch. *You should see:* a rate that climbs, and then falls.
# 5. **Normalise as one.** Batch norm's running statistics differ from worker to worker. Make them one before you test.
#    *You should see:* the same accuracy, whichever worker tests.
# 6. **Report as one.** Average the loss over the workers, and count right answers over all their parts of the test
#    images. One worker writes the files. *You should see:* one line for each epoch in `metrics.jsonl`.
#
# Notebooks 05 to 07 showed that a rate times four is no law. Why does the assignment ask for it? It is the usual
# recipe, together with a warmup and a decay, and for this network it reaches the target. And the rates show the grader
# that your program knows how many workers there are.
#
# You may use all functions of the package `cifar`, such as `shard` of `cifar.data`, `warmup_factor` of `cifar.schedule`
# and `use_device` of `cifar.workers`. `help(shard)` says what one does.
#
# Run it yourself first, small, in JupyterLab's terminal:
# `horovodrun -np 4 python my_assignment/train.py --epochs 1 --images 4096`.

# %% [markdown]
# ## What is asked
#
# Each line is judged from what was *observed*: every worker's updates, the images it used, bytes that went between
# workers, processor time by worker, and the weights in the file. Printing a nice accuracy changes none of these. One
# mistake costs points only once: if a line fails only because another line has failed, it costs nothing more. A pass
# needs the lines in bold. A run that crashes or hangs does not pass, and gets at most 60 points.

# %%
from IPython.display import Markdown

from grader.grading.rubric import PASS_NEEDS, RUBRIC

bold = {need.line: "**" for need in PASS_NEEDS}
rows = [f"| {line.points} | {bold.get(line.id, '')}{line.asks}{bold.get(line.id, '')} |" for line in RUBRIC]
Markdown("\n".join(["| points | what every run must show |", "| --- | --- |", *rows]))

# %% [markdown]
# What the grader fills in, and the target that it sets:

# %%
from grader.common.contract import load as settings

for name in ("fast", "full"):
    one = settings(name)
    print(
        f"{name}: {one.epochs} epochs of {one.train_images:,} images, {one.batch_size} a worker; "
        f"the target is {one.target:.1%} of {one.test_images:,} secret test images"
    )

# %% [markdown]
# If your program trains on more images than it is given, it loses the points of the target, and does not pass. A run
# may take five times as long as our own solution takes on your machine.
#
# ## The rules
#
# The grader starts your program with this command, and fills in values of its own:
#
#     horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
#
# - `B` is the per-worker batch: images a worker uses for one update.
# - Images come through `Split.batch` of `cifar.data` (`load` gives two `Split`s, and `batches` calls it): that is how
#   the grader sees which images were used.
# - Weights change in the `step()` of an optimizer of `torch.optim` (`cifar.lamb.Lamb` is one), after `loss.backward()`:
#   that is how it sees updates. Updates by hand, as in notebook 03, count as none.
# - `O/model.pt` is the state dict of `ResNet9(width=16)`; `O/metrics.jsonl` has a line an epoch. `cifar.training`
#   writes both; take care *which worker* does.
# - The data that the grader hands out is re-keyed: classes renumbered, colours changed, other test images kept secret.
#   A network trained elsewhere is worth nothing there.

# %% tags=["solution"]
# Only the solved notebook has this cell: the reference in place of a learner's program.
import shutil

from lessons.cells.assignment import REFERENCE

shutil.copy(REFERENCE / "train.py", program)

# %% [markdown]
# ## Your grade
#
# The *fast* profile has few images and a low target: it is for trying out. When it is green, set `profile = "full"` at
# the top: this is what counts. A run that hangs is ended after a while, and you are told which workers wait for what.
# (If it says that there is no sandbox: `python -m grader check my_assignment --no-sandbox` in JupyterLab's terminal.)

# %% locked="four_workers"
from lessons.cells.assignment import grade

report = grade(folder, profile)
report["points"]

# %% [markdown]
# ## Reading the grade card
#
# Open `report.html` from the link above. Look at the pictures in this order:
#
# 1. **Learning rate by update:** does it begin at the base rate, climb to the scaled rate, and decay?
# 2. **Shards: which worker used which image:** do the shards cover everything once?
# 3. **One update in Horovod's timeline:** is every gradient exchanged, once? If each is exchanged alone, the exchange
#    begins while the backward pass still runs. With `groups=1` all are exchanged together after it (notebook 04).
# 4. **Weights: equal on all workers?** equal hashes after every update.
#
# ## The certificate
#
# The same check in JupyterLab's terminal is `python -m grader check my_assignment`. After a pass you see a preview of
# the certificate, which nobody has signed. The real one is signed when your instructor has graded your program. Anybody
# can then check that it is genuine and was not changed: `python -m grader verify FILE --issuer institution.json`. FILE
# is the certificate, and your instructor gives `institution.json` away.
#
# ## Handing in
#
# Hand in this notebook **and** the folder `my_assignment` with your `train.py`, under these names; the assignment list
# takes both. Without the folder there is nothing to grade.
#
# ## Summary
#
# - Converting a program is a handful of lines. Knowing *that it works* takes looking at what workers do.
# - The grade is about the run, not about what the program says of itself.
#
# ## Questions
#
# <details><summary>Your program reaches the target, but the line about averaging is red. How can that be?</summary>
#
# One worker may have done all of the work, while the others idled or reported what they did not do. (In the fast
# profile, with its low target, workers that train alone, each on its shard, can get there too.) The network is good;
# distributed training did not happen.
#
# </details>
#
# <details><summary>Every worker writes <code>model.pt</code>, all with equal weights. Why does it cost points?</summary>
#
# Four processes write one file at the same time. With `training.save`, which writes beside it and renames, one renames
# the file away and the others fail. With plain `torch.save` the last one mostly wins, and now and then a reader finds
# half a file. On several machines with a shared disk it gets worse.
#
# </details>
#
# <details><summary>Why must the shards be of equal length?</summary>
#
# Each update ends in an exchange that needs all workers. If one has a batch more, its last exchange never ends.
#
# </details>
