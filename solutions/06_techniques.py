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
# # 06 Techniques
#
# **After this notebook you will be able to** make each update of a multi-worker script go further: with batch
# normalisation across workers, a scaled rate, warmup, a search for the best rate, and a step length for each layer
# (LARS, LAMB). And you will be able to say when each of these is needed, and how you would notice that it is missing.
#
# **Time:** about {{minutes_06}} minutes, and about three minutes of waiting on 2 CPU cores. **Builds on:** 04 (Horovod)
# and 05 (why few updates are the problem).
#
# Notebook 05 ended with a shortage. With $K$ workers and the same per-worker batch, an epoch has $1/K$ of the updates.
# To end at the same place, each update has to go further. It may do so, because its gradient is less noisy. All
# techniques here ask the same question: **how far can one update go, and what breaks first?**

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import difflib
from itertools import pairwise

import torch
from IPython.display import clear_output

from lessons import axes, compare, horovodrun, panels, saved, show
from lessons.cells.launches.running import SOURCE

# %% [markdown]
# ## Five scripts, a few lines apart
#
# `source_code/` has five scripts. Each adds one technique to the script before it. Do not take our word for it. This
# cell compares the files:


# %%
SCRIPTS = ("cifar_base", "cifar_batch_norm", "cifar_scalelr", "cifar_warmup", "cifar_lamb")


def changes(one: str, two: str) -> list[str]:
    """The lines that differ between two scripts, without their docstrings."""
    programs = [(SOURCE / f"{name}.py").read_text().partition('"""\n\n')[2].splitlines() for name in (one, two)]
    return [line for line in difflib.ndiff(*programs) if line[0] in "+-"]


for one, two in pairwise(SCRIPTS):
    print(f"\n{one} -> {two}", *changes(one, two), sep="\n")

# %% [markdown]
# Without the imports, each step is one to three lines. (LAMB is an optimizer with **weight decay**: each update also
# makes the weights a little smaller. A later section explains it.) **Guess:** two of the four steps made the network
# worse in our runs. Which two?
#
# Then let them run, all with the same workers, images, seed and order of the data. Most of the wait is for processes
# that start.


# %%
def run(script: str) -> list[dict]:
    """Train a script on few images. Returns one record for each epoch."""
    size = {"epochs": epochs + 2, "images": images, "batch_size": 32}
    return horovodrun(f"{script}.py", workers, **size, seed=seed, device=device)


curves = {}
for script in SCRIPTS:
    clear_output(wait=True)  # Remove the view of the run before.
    curves[script] = run(script)

# %%
figure, (accuracy, rate) = panels(("epoch", "test accuracy (%)"), ("epoch", "rate at the end of the epoch"))
for script, lines in curves.items():
    done = [line["epoch"] for line in lines]
    accuracy.plot(done, [100 * line["test_accuracy"] for line in lines], label=script[6:])
    rate.plot(done, [line["lr"] for line in lines])
rate.set_yscale("log")
accuracy.legend()
ends = ", ".join(f"{script[6:]} {lines[-1]['test_accuracy']:.1%}" for script, lines in curves.items())
show(
    figure,
    f"Test accuracy and rate by epoch for the five scripts. After {done[-1]} epochs: {ends}.",
    f"Five scripts, {workers} workers, one seed. After {done[-1]} epochs: {ends}. Rates are on a logarithmic axis.",
)

# %% [markdown]
# One seed and a few epochs: this is a first look, not a result. (The warmup takes three epochs, so `warmup` and `lamb`
# reach their full rate only at the end.) Here is the result of notebook 07, with eight workers, all images, twelve
# epochs and five seeds:
#
# | script | test accuracy |
# | --- | --- |
# | `cifar_base` | {{c32_base}} % |
# | `cifar_batch_norm` | {{c32_eight_bn}} %, which is {{c32_bn_eight}} points more |
# | `cifar_scalelr` | {{c32_eight_scaled}} %, which is {{c32_scaled}} points less |
# | `cifar_warmup` | {{c32_eight_warmup}} %, which is {{c32_warmup}} points more |
# | `cifar_lamb` | {{c32_lamb}} %, below the plain script |
#
# (The differences were computed before rounding.) **So the scaled rate and LAMB made it worse here. Why?** We take the
# techniques one by one, and ask what each is *for*.
#
# ## Batch normalisation, when every worker has its own batch
#
# A batch normalisation layer subtracts the batch's mean and divides by its standard deviation, for each kind of feature
# (channel) by itself (Ioffe and Szegedy 2015, arXiv:1502.03167). If all weights of the layer before become ten times
# larger, the division takes the factor out again. So a step that makes the weights too large does less harm, and
# training works at higher rates. The later scripts need this. But it would help one worker, too.
#
# With several workers there is a new question: *whose batch?* There are two answers:
#
# | | mean and variance of | costs | is equal to one worker with a $K$ times larger batch |
# | --- | --- | --- | --- |
# | **local** | each worker's own images | nothing | no |
# | **synchronised** | all workers' images together | an exchange in every such layer, forward and backward | yes |
#
# ![](drawings/batch_norm.svg)
#
# (One worker can imitate the first answer by *ghost* batches: it takes a mean for each part of its batch. Hoffer et al.
# 2017, arXiv:1705.08741.) How much do the workers' means differ? Make their batches smaller:

# %%
from lessons import explore

explore("statistics")

# %% [markdown]
# (To synchronise, the workers exchange sums: of the values and of their squares. The mean of the workers' variances
# would be too small, because the workers' means differ, too.) Local is what you get if you do nothing. Each worker
# normalises over its own images, and their number does not change when workers join. For this reason Goyal et al. 2017
# (arXiv:1706.02677) recommend it. In Horovod `hvd.SyncBatchNorm` synchronises (on GPUs only).
#
# The experiment trains the small ResNet for 6 epochs of 16,384 images, with five seeds. In every point of the figure,
# all workers together have 512 images in a batch. So with fewer images on each worker, there are more workers. The
# updates and the rate are the same. Only the number of images that are normalised together changes.
#
# **What to look at:** the left end of each panel, where these images are few. Does the accuracy change by more than the
# error bars (the standard deviation over the seeds)?

# %%
result = saved("C30")

# %% [markdown]
# In the panel on the right, the training loss rises towards small batches, while the accuracy stays. Statistics of few
# images are noisy, so the training has more noise. We see no effect of it on the test accuracy.
#
# So from 32 images on each worker, no difference was seen: the accuracies differ by less than five runs vary. You need
# not pay for synchronised statistics. We did not measure fewer images. (The usual example where it matters is a network
# that finds objects, with two images on each worker.)
#
# ### Whose means are saved?
#
# In a test, the layer does not use the batch. It uses **running statistics**: means that it has collected in training.
# Each worker has collected its own. For example, worker 0 has the mean 0.9 for some feature, and worker 1 has 1.1. So
# each worker would test a slightly different network. The printed accuracy would be a mean over these networks, and
# rank 0 would save only its own.
#
# So `cifar_batch_norm.py` averages them over the workers after each epoch, with `grouped_allreduce_`. Then all have
# 1.0. Do not leave out this line.
#
# ## A scaled rate, and the first updates
#
# Scaling is the obvious way to make updates go further. The linear rule multiplies the base rate by $K$. Notebook 05
# showed where this stops working. The idea is: one long step arrives where $K$ small steps arrive, **as long as the
# gradient hardly changes on the way**. When is that least true?
#
# At the very beginning. The weights are random, and the gradient changes its direction within a few updates. A long
# step can then make the loss many times larger.
#
# ![](drawings/warmup_and_decay.svg)
#
# So the rate begins at its base value and climbs to the scaled one over the first epochs. This is **gradual warmup**
# (Goyal et al. 2017, section 2.2). It climbs a little with *every update*, in a straight line, and ends at $K$ times
# the base rate. This is the peak rate. (In the drawing the rate then falls to zero. In this exercise it stays.)


# %% exercise="warmup_factor"
def warmup_factor(update: int, warmup: int, size: int) -> float:
    """The base rate's factor: from 1 at update 0 to `size` at update `warmup`, and `size` from then on."""
    ### BEGIN SOLUTION
    if update >= warmup:
        return float(size)
    return 1 + (size - 1) * update / warmup
    ### END SOLUTION


# %%
figure, ax = axes("update", "rate / base rate")
for size in (1, workers, 2 * workers):
    ax.plot([warmup_factor(update, 30, size) for update in range(60)], label=f"size {size}", markevery=10)
ax.legend()
ends = ", ".join(f"{warmup_factor(59, 30, size):g}" for size in (1, workers, 2 * workers))
show(
    figure,
    "A line for each number of workers: all begin at 1, climb straight for 30 updates, and stay level.",
    f"Your warmup factor over 60 updates. The lines end at {ends}.",
)

# %% [markdown]
# Now an experiment. One process computes what eight workers would compute, as in notebook 05. It trains the small
# ResNet for 5 epochs of 12,288 images, with 64 images for each worker. There are three optimizers: SGD at a base rate
# of 0.005, SGD at 0.02, and Adam at 0.001. Each trains at its base rate, at eight times this rate (*scaled*), and at
# eight times this rate after a *warmup*. Each of the nine is trained five times. (SGD has **momentum** 0.9: it steps
# along a running sum of the gradients. The newest one counts fully, the one before 0.9 times, the one before that 0.81
# times, and so on.)
#
# **Guess first.** Adam ends at {{c31_adam_base}} % with its usual rate. Where does it end at eight times that rate, if
# there is no warmup?

# %%
my_guess = None  # an accuracy in per cent, such as 35

# %% [markdown]
# **What to look at.** On the left is the loss of each update, for SGD at the higher rate. Does warmup lower the spike,
# or does it only move it to a later update? In the middle is the highest loss of each training. The grey line is the
# loss of guessing, $\ln 10$. Far above it, the network is sure, and wrong. On the right is the accuracy at the end.

# %%
result = saved("C31")
compare("adam", my_guess)

# %% [markdown]
# In the left panel warmup does both: it makes the spike lower, and moves it to a later update. Does it repair every
# scaled run?
#
# - **SGD, lower rate.** Scaling pays: the accuracy rises from {{c31_low_base}} % to {{c31_low_scaled}} %. Warmup makes
#   an early spike of the loss lower, but the accuracies end together: with it, {{c31_low_warm}} %. The network gets
#   over the spike by itself.
# - **SGD, higher rate.** Eight times this rate is too much: the accuracy falls from {{c31_high_base}} % to
#   {{c31_high_scaled}} %. With warmup the highest loss falls from {{c31_high_peak}} to {{c31_high_peak_warm}}, and the
#   accuracy is {{c31_high_warm}} %. Warmup has helped, and not cured.
# - **Adam.** It is said to be safe. It divides by the gradient's size, so a large gradient does not make a large step.
#   But eight times the rate still makes each step eight times as long. And Adam's first estimates of the gradient's
#   size rest on a few batches. It was not safe: the accuracy falls from {{c31_adam_base}} % to {{c31_adam_scaled}} %.
#   Here warmup is the cure, and brings back {{c31_adam_warm}} %.
#
# Now compare with the base rate. Of the three cases, linear scaling has paid once: for SGD at 0.005, whose base rate
# was too low for so few updates. With Adam and warmup it ends about level. With SGD's higher rate it ends far below. So
# the best rate still has to be searched for.
#
# ## A search for the rate
#
# You tried the rates 0.1 and 0.2. The accuracies are 52 % and 57 %. Can you stop here?
#
# No. A higher rate may be better still (Bengio 2012, arXiv:1206.5533, section 3.3). So you train with 0.4, and get 55
# %. Now half of 0.2 was tried, and twice 0.2, too. Both are worse than 0.2. So the search has ended.
#
# This is the whole rule: **try half and twice the best rate, until both are worse.** Each training costs time, so never
# train with the same rate twice. Write the function that says which rates to try next.


# %% exercise="rates_to_try"
def rates_to_try(rates: list[float], accuracies: list[float]) -> list[float]:
    """Those neighbours of the best rate that have not been tried, in rising order. [] if the search has ended."""
    ### BEGIN SOLUTION
    best = rates[accuracies.index(max(accuracies))]
    return [rate for rate in (best / 2, 2 * best) if rate not in rates]
    ### END SOLUTION


# %% [markdown]
# Your function now leads a real search, for eight workers and SGD. (Again, one process computes what the eight would
# compute.) Each training begins with your warmup. Then the rate falls to zero. The accuracy is measured on 2,048
# **validation images**, which are neither training nor test images. The search begins at the base rate, 0.01. The
# linear rule says 0.08. Which rate will win? Write it down.

# %%
from lessons.cells.tasks.search import BASE, MOST, SCALED, accuracy_with, show_search

tried, new = {}, [BASE]
while new and len(tried) < MOST:  # so it ends in any case
    for rate in new:
        tried[rate] = accuracy_with(rate, warmup_factor, seed, device)
        print(f"rate {rate:g}: {tried[rate]:.1%}")
    new = rates_to_try(list(tried), list(tried.values()))
if SCALED not in tried:
    print("The search has ended. Now the scaled rate, for comparison:")
    tried[SCALED] = accuracy_with(SCALED, warmup_factor, seed, device)
    print(f"rate {SCALED:g}: {tried[SCALED]:.1%}")
show_search(tried)

# %% [markdown]
# Was it 0.08? Each rate was trained only once, so a small difference between neighbours may be chance. The linear rule
# says in which direction to search. It does not say where to stop.
#
# ## A step length for each layer: LARS and LAMB
#
# `cifar_lamb` ended last in the table above. But at a rate that was searched, the same optimizer ends first, at
# {{c32_lamb_tuned}} % (notebook 07). So it is worth knowing what it does.
#
# One rate serves all layers. Is that reasonable? Train for ten updates with Adam, and compare the last step of each
# layer with the layer's own weights. ($\lVert w \rVert$ is the length of all weights of a layer as one vector.)


# %%
from cifar.lamb import Lamb, parameter_groups
from lessons.cells.plots.layers import last_step, show_shares, show_steps

RATE = 0.001
adam = last_step(lambda net: torch.optim.Adam(net.parameters(), lr=RATE), seed, device)
show_steps(adam)

# %% [markdown]
# Look at the last column. It is the step of a layer as a share of the layer's weights. How many times as large as the
# smallest share is the largest? Write down your estimate. The caption of the next figure has the answer.
#
# ### LARS and LAMB
#
# Two optimizers give each layer its own step length: **LARS** (You, Gitman, Ginsburg 2017, arXiv:1708.03888) and
# **LAMB** (You et al. 2019, arXiv:1904.00962). The authors of LARS suppose that the layer with the largest share breaks
# first when you raise the rate. Then one layer limits the rate of the whole network. (We have not tested that.) So let
# every layer's step be (nearly) the same *share* of its weights. LAMB does this in four steps.
#
# Take small numbers first. A layer has the weights $w = (3, 4)$, and their length is 5. Adam's direction is
# $r = (1, 0)$. The weight decay is $\lambda = 0.5$, so it adds half of the weights: $d = (2.5, 2)$, and its length is
# about 3.20. LAMB stretches $d$ to the length 5, by the factor $5 / 3.20$, which is about 1.56. With the rate 0.01 the
# step has the length 0.05. That is one hundredth of the weights, *whatever the gradient was*. In general:
#
# 1. Compute Adam's direction $r = \hat m / (\sqrt{\hat v} + \epsilon)$. Here $\hat m$ is a running mean of the last
#    gradients, and $\hat v$ is a running mean of their squares. So each weight's gradient is divided by its usual size,
#    and $r$ is about 1 or less for each weight. If all gradients of a weight were 2, then $\hat m = 2$, $\hat v = 4$,
#    and $r = 2 / \sqrt 4 = 1$. $\epsilon$ is a small number that prevents a division by 0.
# 2. Add the weight decay $\lambda$, which pulls each weight a little towards zero: $d = r + \lambda w$.
# 3. Compute the **trust ratio** $\lVert w \rVert / \lVert d \rVert$. It stretches or shrinks $d$ to the length of the
#    layer's weights.
# 4. Step by $\eta \, \frac{\lVert w \rVert}{\lVert d \rVert} \, d$, with the rate $\eta$.
#
# LARS does nearly the same, with the plain gradient in place of $r$, and with momentum afterwards. (It also multiplies
# the ratio by a small constant, the *trust coefficient*.) So choose by the optimizer that works for your network with
# small batches: LAMB where this is Adam, as for most language models, and LARS where it is SGD.


# %% exercise="trust_ratio"
def trust_ratio(weights: list[float], direction: list[float], decay: float) -> float:
    """The factor with which each layer's step is the same share of its weights; 1 where it cannot be computed."""
    ### BEGIN SOLUTION
    above = sum(weight**2 for weight in weights) ** 0.5
    below = sum((step + decay * weight) ** 2 for weight, step in zip(weights, direction, strict=True)) ** 0.5
    return above / below if above > 0 and below > 0 else 1.0
    ### END SOLUTION


# %%
print(f"weights (3, 4), direction (1, 0), decay 0.5: {trust_ratio([3.0, 4.0], [1.0, 0.0], 0.5):.4f}")

# %% [markdown]
# Now the real layers. We have recorded Adam's step. Divided by the rate, it is Adam's direction. Your function gives
# the trust ratio of each layer (here without weight decay):

# %%
for name, (weight, step) in adam.items():
    ratio = trust_ratio(weight.flatten().tolist(), (step / RATE).flatten().tolist(), 0.0)
    print(f"{name:24} Adam's step is {step.norm() / weight.norm():5.2%} of the weights; trust ratio {ratio:.3f}")

# %% [markdown]
# The trust ratio is small where Adam's step was a large share of the weights. So what should the next figure show? It
# has the real optimizer of `source_code/cifar/lamb.py`, in training, with its weight decay:

# %%
lamb = last_step(lambda net: Lamb(parameter_groups(net, weight_decay=0.5), lr=0.01), seed, device)
show_shares({"Adam": adam, "LAMB": lamb})

# %% [markdown]
# Is it better? LAMB was made for BERT, a language model, with batches of tens of thousands. Its authors cut the
# training from days to 76 minutes. Nado et al. 2021 (arXiv:2102.06356) then tuned plain Adam and a kind of SGD with
# momentum as carefully, and these kept up. So a result with LAMB proves little without a tuned SGD beside it. Notebook
# 07 has both.
#
# Three things to know before you use LAMB:
#
# - **Its rate means something else.** It is the share of its weights that a layer moves in each update. Adam's rate
#   tells you nothing about it.
# - **All workers get the same ratio.** It is computed from the *averaged* gradient, so nothing more has to be
#   exchanged.
# - **Its rate should fall.** With a constant rate each layer keeps moving by the same share, and never settles.
#   `cifar_lamb.py` scales its rate and never lets it fall. On eight workers it ends lower than the script without any
#   technique. Notebook 07 shows what it needs.
#
# <details><summary>Do all weights get a trust ratio?</summary>
#
# No. Biases are the numbers that a layer adds. They, and the scales and shifts of batch normalisation, get no trust
# ratio and no weight decay. Some of them begin at zero, and a step in proportion to their length would nearly freeze
# them. `parameter_groups` sees to this.
#
# </details>
#
# ## Which technique is missing?
#
# Four programs train with eight workers and a base rate of 0.1. The numbers are made up. In each program one technique
# is missing, or is done twice. Which one?
#
# | | rate at updates 0, 50 and 500 | training loss at updates 0, 10 and 500 | accuracy that was printed, and that of the saved network |
# | --- | --- | --- | --- |
# | program A | 0.8, 0.8, 0.8 | 2.30, 19.5, 2.29 | 11 %, 11 % |
# | program B | 0.1, 0.1, 0.1 | 2.30, 2.21, 1.62 | 44 %, 44 % |
# | program C | 0.1, 0.45, 0.8 | 2.30, 2.19, 1.21 | 58 %, 51 % |
# | program D | 0.1, 3.25, 6.4 | 2.30, 2.20, 2.30 | 10 %, 10 % |
#
# Choose one for each program: `"warmup"`, `"scaling"` (the rate is not scaled), `"statistics"` (the running statistics
# are not averaged) or `"scaled twice"`. Then name the number that shows it, and run the cell.

# %%
from lessons.cells.tasks.missing import missing

missing("A")
missing("B")
missing("C")
missing("D")

# %% [markdown]
# ## Back to the five scripts
#
# Two of the five scripts end lower than the one before. Now you can say why. The numbers are those of notebook 07:
#
# | script | what is wrong | what mends it |
# | --- | --- | --- |
# | `cifar_scalelr` | eight times Adam's rate from the first update on | the next script has warmup, which brings {{c32_warmup}} points back |
# | `cifar_lamb` | nobody has searched its rate, and the rate never falls | at a searched rate that falls, LAMB reaches {{c32_lamb_tuned}} % in place of {{c32_lamb}} % |
#
# In both cases the technique is not to blame. Its rate is.
#
# <details><summary>The base rate of cifar_lamb is 0.01. How far does each layer move in one update, with eight
# workers?</summary>
#
# The scaled rate is 8 × 0.01 = 0.08, so each layer moves by 8 % of its weights. It does so in every update, up to the
# last one. So the weights never settle.
#
# </details>
#
# ## A recipe
#
# 1. Keep the batch of each worker as large as it was with one worker. Use batch normalisation as it is, and average its
#    running statistics.
# 2. Write the schedule in epochs: a warmup over the first quarter of a short run. Then the rate falls to zero.
# 3. Search the peak rate from the base rate on, until both neighbours of the best one are worse. The best peak rate
#    often lies below $K$ times the base rate. Then train the two best rates once more at full length.
# 4. If the loss still has spikes, *clip* the gradient after the exchange: if it is longer than a limit, scale it down to
#    the limit. Notebook 04 says how, and notebook 07 shows what it brings.
# 5. Compare with LAMB at a searched rate, with the same warmup and decay.
# 6. Choose rates on validation images. Then compare several seeds on test images, and count the updates. Remove
# techniques one at a time. (Warmup and clipping may do the same work: both can prevent a spike. So also remove both.)
#
# <details><summary>What breaks without each of them?</summary>
#
# | technique | what breaks without it | how you notice |
# | --- | --- | --- |
# | batch normalisation, running statistics averaged | the saved network is not the one that was tested | rank 0's accuracy differs from the reported one |
# | scaled rate | each image moves the weights less | more workers end lower at equal epochs |
# | warmup | the first updates overshoot | the loss rises far above that of guessing |
# | LARS, LAMB | one layer may limit the rate of all | compare with a searched rate of SGD or Adam |
#
# </details>
#
# Goyal et al. 2017 also list mistakes that give no error message. Lab 16 has their checklist.
#
# ## Summary
#
# - With $K$ workers there are fewer updates. The techniques here let an update go further.
# - Batch normalisation needs two decisions: whose statistics train (local is the default), and whose are saved (average
#   them).
# - Warmup makes the first spike of the loss lower. It does not repair every rate.
# - Search the rate from the base rate on, until half and twice the best one are worse.
# - LARS and LAMB make each layer's step a share of its weights. Compare them with optimizers that are tuned as well.
#
# The lines to keep:
#
# ```python
# rate = base_rate * warmup_factor(update, warmup, hvd.size())
# if update > warmup:
#     rate *= (updates - update) / (updates - warmup)  # falls evenly to zero
# hvd.grouped_allreduce_(running_statistics(net))  # once an epoch
# step = rate * (w.norm() / d.norm()) * d  # LAMB, for each layer: d is Adam's direction plus weight decay
# ```
#
# ## Questions
#
# <details><summary>A colleague adds warmup and the loss still spikes, only later. What do you tell them?</summary>
#
# There are three things to try. A longer warmup may help, because the loss becomes less steep while the rate climbs.
# Clipping the gradients may cut off the spike. If neither helps, take a lower peak rate.
#
# </details>
#
# <details><summary>You multiply all weights of a convolution by 10, and batch normalisation follows it. What changes for
# SGD, and what for LAMB?</summary>
#
# The network's output does not change: the normalisation divides the 10 out. The gradient of these weights becomes ten
# times smaller, and the weights are ten times larger. So SGD's step is a hundred times smaller as a share of the
# weights. LAMB's step is the same share as before.
#
# </details>
