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
from lessons.cells.tasks.assignment import begin

program = begin(folder)
print(f"your program: {program}")
print(program.read_text())

# %% [markdown]
# ## The rules
#
# The grader starts your program with this command, and fills in values of its own. `B` is the per-worker batch: the
# images that a worker uses for one update.
#
#     horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S
#
# Your program reads the data from the folder `D`, and writes into the folder `O`.
#
# | do | do not | because |
# | --- | --- | --- |
# | take images by `batches(...)`, as the starter does | index the tensors yourself | so the grader sees which images a worker used |
# | give the network images that `normalise(...)` has made, as the starter does | scale them in another way | the grader tests `model.pt` with such images |
# | change weights by `step()` of a `torch.optim` optimizer, after `loss.backward()` | change them by hand | so it sees your updates (`cifar.lamb.Lamb` is such an optimizer, too) |
# | write files by `cifar.training`, as the starter does | write them on every worker | two workers that write one file destroy it |
# | keep the network, `ResNet9(width=16)` | take another one | the file `model.pt` must fit |
#
# <details><summary>Can I train the network beforehand?</summary>
#
# That does not help. The grader changes the data for each run: the classes get other numbers, the colours change, and
# the test images are kept secret. A network that was trained elsewhere is worth nothing there.
#
# </details>
#
# ## A way to get there
#
# Take one step at a time. Run the program after each step, small, in JupyterLab's terminal:
# `horovodrun -np 4 python my_assignment/train.py --epochs 1 --images 4096`. **Before each run, say what you expect.**
#
# 1. **Start four workers.** Start Horovod, and take the device that belongs to this worker. Let only rank 0 write files.
#    Give the random distortions of each worker a seed of their own. (The shuffle keeps the common seed.) *To look*, add
#    `print(sum(w.sum().item() for w in net.parameters()))` at the end. You should see four different numbers: four
#    processes train by themselves.
# 2. **Make them one.** Send worker 0's weights to all, and wrap the optimizer, so that all workers apply the mean
#    gradient. *Look again.* The four numbers should be equal now.
# 3. **Divide the images.** Give each worker its shard of one shuffle, equally many images each. Why equally many? A
#    worker with one batch more waits in an exchange to which no other worker comes. *To look*, print the length of the
#    order that you give to `batches`. It should be a quarter of the length before.
# 4. **Choose the rate.** The base rate is meant for one worker. Scale it by the number of workers, warm it up over
#    about a fifth of the updates, and keep the starter's decay. (With 6,000 images, 250 a worker and 4 epochs there are
# 24 updates. How many of them are warmup?) *To look*, print the factor that you give to the scheduler, for some
# updates.
#    It should climb, and then fall.
# 5. **Normalise as one.** Batch norm's running statistics differ from worker to worker. Make them one before you test.
#    *To look*, let every worker test all images. You should see four different accuracies before, and one accuracy four
#    times afterwards. (The line on `metrics.jsonl` may notice it. And the network gets better by it.)
# 6. **Report as one.** Average the loss over the workers, and count right answers over all their parts of the test
#    images. *To look*, open `metrics.jsonl`. It should have one line for each epoch.
#
# Then take your `print` lines out again.
#
# <details><summary>Notebooks 05 to 07 showed that a rate times four is no law. Why does the assignment ask for it?
# </summary>
#
# It is the usual recipe, together with a warmup and a decay, and for this network it reaches the target. And the rates
# show the grader that your program knows how many workers there are.
#
# </details>
#
# You may use all functions of the package `cifar`, such as `shard` of `cifar.data`, `warmup_factor` of `cifar.schedule`
# and `use_device` of `cifar.workers`. `help(shard)` says what one does.

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
# %% tags=["solution"]
# Only the solved notebook has this cell: the reference in place of a learner's program.
import shutil

from lessons.cells.tasks.assignment import REFERENCE

shutil.copy(REFERENCE / "train.py", program)

# %% [markdown]
# ## Your grade
#
# The *fast* profile has few images and a low target: it is for trying out. When it is green, set `profile = "full"` at
# the top: this is what counts. A run that hangs is ended after a while, and you are told which workers wait for what.
# (If it says that there is no sandbox: `python -m grader check my_assignment --no-sandbox` in JupyterLab's terminal.)

# %% locked="four_workers"
from lessons.cells.tasks.assignment import grade

report = grade(folder, profile)
report["points"]

# %% [markdown]
# ## Reading the grade card
#
# Open `report.html` from the link above. It has pictures of your run. This is what three of them show of a right
# program, and of a wrong one. (In the real picture of the shards, each image is a dot. A dot is black if several
# workers used the image, and white if none did.)
#
# ![](drawings/right_and_wrong.svg)
#
# A fourth picture is *One update in Horovod's timeline*. Is every gradient exchanged, once? If each is exchanged alone,
# the exchange begins while the backward pass still runs. With `groups=1` all are exchanged together after it (notebook
# 04).
#
# <details><summary>On a card, the line about the training images is red. A quarter of the dots is black, and all others
# are white. Which step is missing?</summary>
#
# Step 3. Every worker takes its batches from the front of the same order. Somebody forgot `shard`.
#
# </details>
#
# <details><summary>The weights of all workers are equal at update 0, and then they part. Which line is missing?</summary>
#
# The one that wraps the optimizer. Worker 0 has sent its weights, so the start is equal. Then each worker applies its
# own gradient.
#
# </details>
#
# The card names two accuracies. One is what your program measured on the test images that it got. The other is measured
# by the grader on images that your program never saw. Only the second one counts.
#
# <details><summary>The certificate</summary>
#
# The same check in JupyterLab's terminal is `python -m grader check my_assignment`. After a pass you see a preview of
# the certificate, which nobody has signed. The real one is signed when your instructor has graded your program. Anybody
# can then check that it is genuine and was not changed: `python -m grader verify FILE --issuer institution.json`. FILE
# is the certificate. Your instructor makes the file `institution.json` public.
#
# </details>
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
# <details><summary>A program leaves out step 5. Each worker tests a quarter of the images. What is wrong with the
# accuracy?</summary>
#
# The workers have equal weights, but different running statistics. So they are four slightly different networks, and
# the accuracy is a mean over them. The file holds the statistics of one of them, and its accuracy is another one.
#
# </details>
