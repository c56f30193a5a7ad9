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
# **After this notebook you will be able to** turn a plain multi-worker script into one that makes each of its few
# updates count: batch normalisation across workers, a scaled rate, warmup, momentum correction, and a step length for
# each layer (LARS, LAMB). And you will be able to say which of these is needed, when, and how you would notice.
#
# **Time:** about {{minutes_06}} minutes, and about three minutes of waiting on 2 CPU cores. **Builds on:** 04 (Horovod)
# and 05 (why few updates are the problem).
#
# Notebook 05 ended with a shortage. With $K$ workers and the same per-worker batch, an epoch has $1/K$ of the updates.
# To end at the same place each update has to go further, and it may, because its gradient is less noisy. All techniques
# here are about the same question: **how far can one update go, and what breaks first?**

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import difflib
from itertools import pairwise

import torch
from IPython.display import Markdown, clear_output

from benchmarks.experiment.dataset import data
from benchmarks.instruments.simulated_workers import Recipe, train
from cifar.lamb import Lamb, parameter_groups
from lessons import axes, compare, horovodrun, panels, saved, show
from lessons.cells.running import SOURCE

# %% [markdown]
# ## Five scripts, a few lines apart
#
# `source_code/` has five scripts, and each contains all that came before it. So the difference between neighbours is
# the technique. (LAMB also has a rate and a weight decay of its own.) Do not take our word for it. This is computed
# from the files:


# %%
SCRIPTS = ("cifar_base", "cifar_batch_norm", "cifar_scalelr", "cifar_warmup", "cifar_lamb")


def changes(one: str, two: str) -> list[str]:
    """The lines in which two scripts differ, without the texts that they begin with."""
    programs = [(SOURCE / f"{name}.py").read_text().partition('"""\n\n')[2].splitlines() for name in (one, two)]
    return [line for line in difflib.ndiff(*programs) if line[0] in "+-"]


for one, two in pairwise(SCRIPTS):
    print(f"\n{one} -> {two}", *changes(one, two), sep="\n")

# %% [markdown]
# Leave out the imports, and each step is one to three lines. Read them once more and guess: which of these lines
# matters most, and does one of them do harm?
#
# Then let them run. Each script gets the same workers, images, seed and order of the data. Most of the wait is for
# processes that start: the workers share your cores, and each loads PyTorch and the data.


# %%
def run(script: str) -> list[dict]:
    """The lines of a script's epochs, trained small."""
    size = {"epochs": epochs + 2, "images": images, "batch_size": 32}
    return horovodrun(f"{script}.py", workers, **size, seed=seed, device=device)


curves = {}
for script in SCRIPTS:
    clear_output(wait=True)  # The view of the run before goes, so that you see one at a time.
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
# One seed and a few epochs: this is a first look, not a result. The warmup takes three epochs, so `warmup` and `lamb`
# reach their full rate only at the end. Here is the result, with eight workers, all images, twelve epochs and five
# seeds (notebook 07). The plain script reaches {{c32_base}} %. Batch normalisation brings {{c32_bn_eight}} points. The
# scaled rate takes most of them away again, and warmup brings them back. LAMB ends at {{c32_lamb}} %, below the plain
# script. **So two of the five scripts are worse than the one before. Why?** A technique that helps one recipe can hurt
# another. So we take them one by one, and ask each what it is *for*.
#
# ## Batch normalisation, when every worker has its own batch
#
# ![](drawings/batch_norm.svg)
#
# A batch normalisation layer subtracts a batch's mean and divides by its standard deviation, channel by channel (Ioffe
# and Szegedy 2015, arXiv:1502.03167). It makes the loss much less sensitive to the size of the weights, so training
# stands higher rates. That is welcome here: it is what the later scripts build on. But it has nothing to do with
# several workers as such. It would help one worker, too.
#
# What is new with several workers is the question *whose batch?* There are two answers. (The drawing also shows *ghost*
# batches. They imitate the first answer on a single worker.)
#
# | | mean and variance of | costs | is equal to one worker with a $K$ times larger batch |
# | --- | --- | --- | --- |
# | **local** | each worker's own images | nothing | no |
# | **synchronised** | all workers' images together | an exchange in every such layer, forward and backward | yes |
#
# How much do the workers' means differ? Make their batches smaller:

# %%
from lessons import explore

explore("statistics")

# %% [markdown]
# Local is what you get if you do nothing. Each worker then always normalises over the same number of images. This
# number does not change when workers join, so each worker goes on training in the same way. For this reason Goyal et
# al. 2017 (arXiv:1706.02677) recommend it. Hoffer et al. 2017 (arXiv:1705.08741) did it on purpose on a *single*
# machine, as "ghost batches", and saw better generalisation. In Horovod `hvd.SyncBatchNorm` synchronises (on GPUs
# only).
#
# One line cannot be left out. Each worker also keeps running statistics for evaluation, and these differ from worker to
# worker. Which ones are saved in the end? `cifar_batch_norm.py` averages them over the workers after each epoch: its
# line with `grouped_allreduce_`. Without it, each worker tests a slightly different network. Rank 0 prints the mean of
# these accuracies, and saves its own network.
#
# The experiment trains the small ResNet for 6 epochs of 16,384 images, with five seeds. Every point of the figure has a
# global batch of 512 images, the same number of updates and the same rate. Only the number of images that are
# normalised together changes.
#
# **What to look at:** the left end of each panel, where these images are few. Does the accuracy change by more than the
# error bars?

# %%
result = saved("C30")

# %% [markdown]
# Two effects pull in different directions. Statistics of few images are noisy. Noise makes it harder to learn the
# training images by heart, and that can *raise* test accuracy. But with very few images on a worker, the noise costs
# accuracy, and the running statistics that a test uses fit the batches less well. In the panel on the right, the
# training loss rises towards small batches, while the accuracy stays. So there is more noise, and we see no effect on
# the test accuracy.
#
# So from 32 images on each worker, no difference was seen: the accuracies differ by less than five runs vary. You need
# not pay for synchronised statistics. Smaller batches were not measured here. (Detection and segmentation networks with
# two images a worker are the usual example.)
#
# ## A scaled rate, and the first updates
#
# Scaling is the obvious way to make updates go further. The linear rule multiplies the base rate by $K$, and notebook
# 05 showed where it ends. The idea is: one step that is $K$ times as long ends where $K$ small steps end, **as long as
# the gradient hardly changes on the way**. When is that least true? At the very beginning. The weights are random, the
# loss falls steeply, and the gradient turns within a few updates. A step that is harmless after an epoch can make the
# loss many times larger within the first updates.
#
# ![](drawings/warmup_and_decay.svg)
#
# So the rate begins at its base value and climbs to the scaled one over the first epochs. This is **gradual warmup**
# (Goyal et al. 2017, section 2.2). Two things to get right: it climbs a little with *every update*, and it ends at $K$
# times the base rate. (The drawing goes on with a decay to zero. In this exercise the rate then stays.)


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
# Now the test. One process computes what eight workers would compute, as in notebook 05. It trains the small ResNet for
# 5 epochs of 12,288 images, with 64 images for each worker. It does so in nine ways, five times each. There are three
# optimizers: SGD at a base rate of 0.005, SGD at 0.02, and Adam at 0.001. Each optimizer uses its base rate, then eight
# times this rate (*scaled*), and then eight times this rate after a *warmup*. (SGD has **momentum** 0.9 here: it steps
# along a running sum of the gradients. The newest one counts fully, the one before 0.9 times, the one before that 0.81
# times, and so on.)
#
# **What to look at.** On the left is the loss of each update, for SGD at the higher rate. Does warmup lower the peak,
# or does it only move it to a later update? In the middle is the highest loss of each training. The grey line there is
# the loss of guessing, $\ln 10$. A loss far above it is not slow progress: the network is sure, and wrong. On the right
# is the accuracy at the end.
#
# **Guess first.** Adam ends at {{c31_adam_base}} % with its usual rate. Where does it end at eight times that rate, if
# there is no warmup?

# %%
my_guess = None  # an accuracy in per cent, such as 10

# %%
result = saved("C31")
compare("adam", my_guess)

# %% [markdown]
# In the left panel warmup does both: it makes the peak lower, and moves it to a later update. One could expect that it
# repairs every scaled run. This is what came out:
#
# - **SGD, lower rate.** Scaling pays: {{c31_low_base}} % become {{c31_low_scaled}} %. Warmup makes an early peak of the
#   loss lower, in the median from {{c31_low_peak}} to {{c31_low_peak_warm}} nats, but the accuracies end together: with
#   it, {{c31_low_warm}} %. The network gets over the peak by itself.
# - **SGD, higher rate.** Eight times this rate is too much: {{c31_high_base}} % become {{c31_high_scaled}} %. With
#   warmup the peak falls from {{c31_high_peak}} to {{c31_high_peak_warm}} nats, and the accuracy rises to
#   {{c31_high_warm}} %. Warmup has helped, and not cured. Notebook 07 also shortens very long gradients (it **clips**
#   them), and lets the rate decay. There the same network trains well at an even higher peak rate.
# - **Adam.** It is said to be safe. It divides by the gradient's size, so a large gradient does not make a large step.
#   But eight times the rate makes steps that are eight times as long, in every weight at once. And at the start, Adam's
#   estimates of the gradient's size rest on a few batches. It was not safe: {{c31_adam_base}} % become
#   {{c31_adam_scaled}} %. Here warmup is the cure, and brings back {{c31_adam_warm}} %. The peak of the loss falls from
#   {{c31_adam_peak}} to {{c31_adam_peak_warm}} nats.
#
# Now compare with *base*. Of the three cases, linear scaling has paid once: for SGD at 0.005, whose base rate was too
# low for so few updates. With Adam and warmup it ends about level. With SGD's higher rate it ends far below. Scaling is
# a rule for where to look first. The best rate still has to be searched for (notebook 05, and the table of rules for
# each optimizer there).
#
# ## A step length for each layer: LARS and LAMB
#
# One rate serves all layers. Is that reasonable? Train for ten updates with Adam and compare each layer's last step
# with the layer's own weights.


# %%
def last_step(make_optimizer, updates: int = 10) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Weights of each convolution and of the linear layer before the last update, and what it took off them."""
    before = {}

    def remember(net, optimizer, update):
        before.update({name: weight.detach().clone() for name, weight in net.named_parameters() if weight.dim() > 1})

    parts = data({"images": 128 * updates, "test_images": 100, "device": device})
    recipe = Recipe(optimizer=make_optimizer, batch_size=128, epochs=1, before_step=remember)
    after = dict(train(recipe, parts, seed).net.named_parameters())
    return {name: (weight, weight - after[name].detach()) for name, weight in before.items()}


RATE = 0.001
adam = last_step(lambda net: torch.optim.Adam(net.parameters(), lr=RATE))

# %%
rows = ["| layer | shape | ‖weights‖ | ‖step‖ | step / weights |", "| --- | --- | --- | --- | --- |"]
for name, (weight, step) in adam.items():
    share = step.norm() / weight.norm()
    rows.append(f"| `{name}` | {tuple(weight.shape)} | {weight.norm():.2f} | {step.norm():.3f} | {share:.2%} |")
Markdown("\n".join(rows))

# %% [markdown]
# Look at the last column. It is the step of a layer as a share of the layer's weights. One layer moves several times as
# far as another. **LARS** is an optimizer that gives each layer its own step length. Its authors suppose that the layer
# with the largest share breaks first when you raise the rate. Then this layer limits the rate of all others. We have
# not tested that.
#
# The idea of LARS (You, Gitman, Ginsburg 2017, arXiv:1708.03888) and of **LAMB** (You et al. 2019, arXiv:1904.00962):
# let every layer's step be (nearly) the same *share* of its weights. LAMB goes in four steps.
#
# 1. Compute Adam's direction $r = \hat m / (\sqrt{\hat v} + \epsilon)$. Here $\hat m$ and $\hat v$ are running means of
#    the gradient and of its square, and $\epsilon$ is a small number.
# 2. Add the weight decay $\lambda$: $d = r + \lambda w$.
# 3. Compute the **trust ratio** $\lVert w \rVert / \lVert d \rVert$. It brings $d$ to the length of the layer's
#    weights.
# 4. Step by $\eta \, \frac{\lVert w \rVert}{\lVert d \rVert} \, d$.
#
# LARS takes the direction $g + \lambda w$, with the plain gradient $g$, and the ratio
# $\lVert w \rVert / (\lVert g \rVert + \lambda \lVert w \rVert)$. It applies momentum afterwards, to the scaled step.
#
# LARS builds on SGD with momentum, and LAMB on Adam. So begin with the one whose base works for your network with small
# batches: LAMB where this is Adam, as for most language models, and LARS where it is SGD.
#
# Work LAMB through on small numbers first. Weights $w = (3, 4)$ have the length $\lVert w \rVert = 5$. Adam's direction
# is $r = (1, 0)$, and the decay is $\lambda = 0.5$. Then $d = r + \lambda w = (2.5, 2)$, whose length is about 3.20.
# The trust ratio is $5 / 3.20$, about 1.56. The ratio times the direction has the length $1.56 \cdot 3.20 = 5$, that of
# the weights. With $\eta = 0.01$ the step has the length 0.05: one hundredth of the weights, *whatever the gradient
# was*.


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
# On the real layers: Adam's direction is the step that we have recorded, divided by the rate. Your function gives the
# trust ratio of each (here without decay):

# %%
for name, (weight, step) in adam.items():
    ratio = trust_ratio(weight.flatten().tolist(), (step / RATE).flatten().tolist(), 0.0)
    print(f"{name:24} {ratio:.3f}")

# %% [markdown]
# The trust ratio is small where Adam's step was large beside the weights, and large where it was small. So the steps
# become equal shares. Now the real optimizer of `source_code/cifar/lamb.py`, in training, with its weight decay:

# %%
lamb = last_step(lambda net: Lamb(parameter_groups(net, weight_decay=0.5), lr=0.01))
figure, ax = axes("step / weights at update 10 (%)", "")
spans = {}
for name, found in (("Adam", adam), ("LAMB", lamb)):
    shares = [100 * (step.norm() / weight.norm()).item() for weight, step in found.values()]
    ax.plot(shares, range(len(shares)), linestyle="none", label=name, markersize=7)
    spans[name] = f"{max(shares) / min(shares):.1f}"
ax.set_yticks(range(len(adam)), adam)
ax.legend()
show(
    figure,
    f"One dot for each layer. Adam's largest share is {spans['Adam']} times its smallest, LAMB's "
    f"{spans['LAMB']} times.",
    f"Each layer's step beside its weights. Largest over smallest: Adam {spans['Adam']}, LAMB {spans['LAMB']}.",
)

# %% [markdown]
# Five things that tutorials leave out:
#
# - **What is left alone.** Biases and normalisation parameters are neither adapted nor decayed. Batch normalisation's
#   shift starts at zero: its norm stays small for long, and steps in proportion to that norm would nearly freeze it.
#   That is what `parameter_groups` is for.
# - **What a rate means now.** LAMB's rate is the share of its weights that a layer moves each update. It cannot be
#   compared with Adam's, and a rate that was right for Adam is meaningless here.
# - **Where the workers are.** The ratio is computed from the *averaged* gradient, so all workers get the same ratio
#   without exchanging anything more. If each worker computed it from its own gradient, the workers would make different
#   steps.
# - **LAMB's authors use warmup**, and a decay at the end. With constant rate each layer keeps moving by the same share,
#   and never settles.
# - **Implementations differ** in what they adapt, whether they clip the global gradient first, whether they correct
#   Adam's running means for their start at zero, and whether they bound the weight norm (see the note in `lamb.py`).
#   "We used LAMB" does not describe an experiment.
#
# Is it better? For its first purpose, BERT with batches of tens of thousands, its authors cut training from days to 76
# minutes. But Nado et al. 2021 (arXiv:2102.06356) repeated large-batch results with plain Adam and with a kind of
# momentum, tuned as carefully, and found that these keep up. So runs with LAMB, without runs with a tuned SGD beside
# them, prove little. Notebook 07 has both.
#
# One warning. `cifar_lamb.py` as it stands scales its rate and never lets it fall. On eight workers it ends lower than
# the script without any technique. Notebook 07 has the numbers, and shows what LAMB needs.
#
# ## For other libraries: the velocity remembers the old rate
#
# You may leave this section out if you use PyTorch only: its optimizers do not need what is corrected here. You need it
# for programs in some other libraries, and to read papers. It also shows what momentum really adds up. (The letters $m$
# and $v$ mean something else here than in LAMB.)
#
# SGD with momentum does not step along the newest gradient alone. It keeps a running sum of gradients, the
# **velocity**. The newest gradient counts fully. The one before counts $m$ times as much, usually $m = 0.9$. The one
# before that counts $m^2 = 0.81$. Directions that persist add up, and noise partly cancels. There are two ways to write
# it. PyTorch keeps the rate outside:
#
# $$ u \leftarrow m\,u + g, \qquad w \leftarrow w - \eta\, u. $$
#
# Others, and many papers, absorb the rate into the velocity $v = \eta u$:
#
# $$ v \leftarrow m\,v + \eta\, g, \qquad w \leftarrow w - v. $$
#
# With a constant rate these are the same. But change $\eta$ from one update to the next. In the first form the whole
# step changes at once. In the second, $v$ still consists of gradients that were multiplied by the *old* rate.
#
# Here is an example. The gradient is always 1, $m$ is 0.9, and the rate is 0.1. After many updates $u$ is 10, and both
# forms step by 1. Now the rate falls to 0.01. The first form steps by $0.01 \cdot 10 = 0.1$. The second form steps by
# $0.9 \cdot 1 + 0.01 \cdot 1 = 0.91$, nine times as far. It takes some tens of updates until its steps have come down
# to 0.1.
#
# Goyal et al. 2017 (section 3) therefore correct $v$ when the rate changes, so that the second form does exactly what
# the first one does. They call this **momentum correction**. How must $v$ be changed?


# %% exercise="momentum_correction"
def momentum_correction(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    """One update of the second form at a change of the rate, corrected: the new weight and the new velocity."""
    ### BEGIN SOLUTION
    velocity = momentum * velocity * new_rate / old_rate + new_rate * gradient
    return [weight - velocity, velocity]
    ### END SOLUTION


# %% [markdown]
# A check that you can do yourself: on a parabola, with a rate that changes twice, yours must go exactly where PyTorch
# goes.

# %%
rates = [0.1] * 5 + [0.8] * 5 + [0.05] * 5
weight = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
optimizer = torch.optim.SGD([weight], lr=rates[0], momentum=0.9)
mine, velocity, old = 1.0, 0.0, rates[0]
for new in rates:
    mine, velocity = momentum_correction(mine, velocity, 0.5 * mine, 0.9, old, new)
    old = optimizer.param_groups[0]["lr"] = new
    weight.grad = 0.5 * weight.detach()
    optimizer.step()
print(f"PyTorch: {weight.item():.12f}   yours: {mine:.12f}")

# %% [markdown]
# Now a network: the small ResNet, one worker, batches of 128 images, five seeds. After 200 updates the rate is
# multiplied by eight, or divided by eight. 60 more updates follow.
#
# **What to look at:** the length of each update, divided by its mean length before the change. So 1 means: as before.
# Which line follows the rate at once? And where does the other one take longer to adapt: after the fall or after the
# rise? Then the third panel: does the *loss* notice?

# %%
result = saved("C24")

# %% [markdown]
# After a fall of the rate, the old velocity is too long. Without correction the steps stay too long for some tens of
# updates, and the benefit of the lower rate comes late. We see it in the numbers: after the fall, the loss is higher
# without correction. After a rise, the old velocity is too short. Goyal et al. expected trouble there. After the rise,
# no difference of the loss was seen.
#
# What it means for your programs:
#
# - **PyTorch's SGD needs no correction.** Its velocity does not contain the rate. Adam's running means do not either.
# - Where the rate *is* absorbed (Keras's SGD, Caffe2), the correction is a matter of one update. Horovod's
#   callbacks for Keras do it by multiplying the momentum by new rate / old rate for just that update.
# - A warmup that climbs a little each update changes the rate by a small factor each time. There is little to correct.
#
# ## A recipe
#
# 1. Keep the batch of each worker as large as it was with one worker. Use batch normalisation as it is, and average its
#    running statistics.
# 2. Write the schedule in epochs: a warmup over the first quarter of a short run, and then a decay to zero.
# 3. Search the peak rate on a grid, from the base rate to $K$ times the base rate. If the best rate is the last of the
#    grid, go on.
# 4. Clip the gradient of all weights together, after the exchange: if it is longer than a limit, scale it down to the
#    limit. Notebook 04 says how this is done with Horovod, and notebook 07 shows what it brings.
# 5. Compare with LAMB at a searched rate, with the same warmup and decay.
# 6. Choose rates on validation images. Then compare several seeds on test images, and count the updates. Two techniques
#    can do the same job. Warmup and clipping, for example, may both prevent the spike. If you remove one of them,
#    nothing changes, because the other one still protects you. So also try without both.
#
# ## What breaks without it
#
# | technique | what breaks without it | how you notice | what we measured |
# | --- | --- | --- | --- |
# | batch normalisation, running statistics averaged | the saved network is not the one that was tested | rank 0's accuracy differs from the reported one | not measured (local or synchronised statistics: no difference from 32 images on each worker) |
# | scaled rate | each image counts less | more workers end lower at equal epochs | SGD, lower rate: {{c31_low_base}} % become {{c31_low_scaled}} %; higher rate: {{c31_high_base}} % become {{c31_high_scaled}} %, because eight times this rate is too high |
# | warmup | the first updates overshoot | the loss rises far above that of guessing | Adam: {{c31_adam_scaled}} % become {{c31_adam_warm}} % with warmup; SGD, higher rate: {{c31_high_scaled}} % become {{c31_high_warm}} %; lower rate: {{c31_low_scaled}} % and {{c31_low_warm}} % |
# | momentum correction (not needed in PyTorch) | the old rate lives on in the velocity | after a fall of the rate the steps stay too long | a higher loss after the fall |
# | LARS, LAMB | one layer may limit the rate of all | compare with a searched rate of SGD or Adam | notebook 07 |
#
# ### Which technique is missing?
#
# Four programs train with eight workers and a base rate of 0.1. The numbers are made up, but each case is a common one.
# Write down for each program which technique is missing, or done twice.
#
# | | rate at updates 0, 50 and 500 | training loss at updates 0, 10 and 500 | accuracy that was printed, and that of the saved network |
# | --- | --- | --- | --- |
# | program A | 0.8, 0.8, 0.8 | 2.30, 19.5, 2.29 | 11 %, 11 % |
# | program B | 0.1, 0.1, 0.1 | 2.30, 2.21, 1.62 | 44 %, 44 % |
# | program C | 0.1, 0.45, 0.8 | 2.30, 2.19, 1.21 | 58 %, 51 % |
# | program D | 0.1, 3.25, 6.4 | 2.30, 2.20, 2.30 | 10 %, 10 % |
#
# <details><summary>Program A</summary>
#
# The warmup is missing. The rate is eight times the base rate from the first update on, and the loss rises far above
# that of guessing, which is 2.30. Ten per cent is what guessing gives.
#
# </details>
#
# <details><summary>Program B</summary>
#
# The rate is not scaled. Nothing breaks, but each image counts an eighth of what it counts with one worker. Search for
# a higher rate.
#
# </details>
#
# <details><summary>Program C</summary>
#
# The running statistics are not averaged before the network is tested and saved. Warmup and rate are as they should be.
# But the printed accuracy is a mean over eight different networks, and the saved network is that of rank 0.
#
# </details>
#
# <details><summary>Program D</summary>
#
# The rate is scaled twice: it ends at 64 times the base rate, and not at 8 times. The warmup hides this at first. Look
# for a library or a launcher that multiplies the rate, too.
#
# </details>
#
# ### A list of what goes wrong
#
# Goyal et al. 2017 trained ResNet-50 on 256 GPUs with a global batch of 8,192 at no loss of accuracy. Much of their
# paper is a list of things that go wrong silently. If several workers train worse than one, check it line by line.
#
# <details><summary>The corrections of "ImageNet in 1 hour", as one checklist</summary>
#
# | | do | because | claim, notebook |
# | --- | --- | --- | --- |
# | rate | base rate times $K$ (we search between the base rate and this one) | each image keeps its influence | C20, 05 |
# | warmup | climb from the base to the scaled rate over the first epochs | the early gradient turns too fast | C31, here |
# | momentum | correct the velocity when the rate changes, if it has absorbed the rate | or the old rate lives on | C24, here |
# | batch normalisation | per-worker statistics over a fixed per-worker batch; average the running ones (our own addition); its last scale in a residual block starts at 0 (our small network does not do this) | the loss then does not depend on $K$, and blocks begin as identities | C30, here |
# | aggregation | each worker has $n$ images: divide the sum of the workers' losses by $Kn$, not by $n$; sum once, average once | or the rate is scaled twice | C01 in 03, C23 in lab 13 |
# | weight decay | scale the rate, not the loss | a factor on the loss alone makes the weight decay weaker beside it | C23, lab 13 |
# | shuffling | one shuffle an epoch for all, divided among the workers | or some images come often and others never | C25, lab 13 |
#
# </details>
#
# ## Summary
#
# - With $K$ workers there are fewer updates. Most techniques here let an update go further before training breaks.
# - Batch normalisation needs two decisions: whose statistics train (local is the default), and whose are saved (average
#   them).
# - Warmup bridges a bad beginning, and often lets you use a larger peak rate (Kalra and Barkeshli 2024,
#   arXiv:2406.09405). It does not help at every rate.
# - Momentum correction concerns optimizers whose velocity has absorbed the rate. PyTorch's has not.
# - LARS and LAMB make each layer's step a share of its weights, by the trust ratio. They are another meaning of "rate",
#   and have to be compared with optimizers that were tuned as well.
#
# The lines to keep:
#
# ```python
# rate = base_rate * warmup_factor(update, warmup, hvd.size())
# hvd.grouped_allreduce_(running_statistics(net))  # once an epoch
# step = rate * (weights.norm() / direction.norm()) * direction  # LAMB, for each layer
# ```
#
# ## Questions
#
# <details><summary>A colleague adds warmup and the loss still spikes, only later. What do you tell them?</summary>
#
# That there are three things to try. A longer warmup may get through, because the loss becomes less steep while the
# rate climbs. Clipping the gradients may cut off the spike. If neither helps, lower the rate that warmup leads up to.
#
# </details>
#
# <details><summary>You multiply all weights of a convolution by 10, and batch normalisation follows it. What changes for
# SGD, and what for LAMB?</summary>
#
# The network's output does not change: the normalisation divides the 10 out. Its gradient with respect to these weights
# is a tenth. So SGD's step relative to the weights shrinks a hundred times. LAMB's step is a share of the weights: it
# is ten times as long, and relative to them the same.
#
# </details>
#
# <details><summary>Rank 0 saves the model right after the last update. The accuracy measured on rank 0 during training
# was averaged over all workers. Why can the saved file do worse or better than reported?</summary>
#
# With local batch normalisation every worker has running statistics of its own. If they are not averaged before
# evaluation, each worker evaluated its shard of the test images with its own network, and the mean of these accuracies
# is not that of rank 0's network.
#
# </details>
