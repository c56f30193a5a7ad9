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
# # 16 Lab of lesson 06: a changed rate, and what goes wrong in silence
#
# **After this notebook you will be able to** say what momentum adds up, which of the two ways to write it remembers an
# old rate, and how that is corrected. And you will have a checklist of mistakes that give no error message.
#
# **Time:** {{minutes_16}} minutes. **Builds on:** 06.
#
# This is a lab: a derivation, an experiment and a list that belong to lesson 06, and that no later lesson needs. If you
# use PyTorch only, you can leave out the part about momentum: its optimizers do not need what is corrected here. You
# need it for programs in some other libraries, and to read papers. (The letters $m$ and $v$ mean something else here
# than in LAMB.)

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
from itertools import pairwise

import torch

from lessons import axes, saved, show

# %% [markdown]
# ## A rate that falls, and steps that do not
#
# SGD with momentum does not step along the newest gradient alone. It keeps a running sum of gradients, the
# **velocity**. The newest gradient counts fully. The one before counts $m$ times as much, usually $m = 0.9$. The one
# before that counts $m^2 = 0.81$. Directions that persist add up, and noise partly cancels.
#
# There are two ways to write it. PyTorch keeps the rate $\eta$ outside of the sum:
#
# $$ u \leftarrow m\,u + g, \qquad w \leftarrow w - \eta\, u. $$
#
# Other libraries, and many papers, put the rate into the sum. The velocity is then $v = \eta u$:
#
# $$ v \leftarrow m\,v + \eta\, g, \qquad w \leftarrow w - v. $$
#
# With a constant rate both make the same steps. What happens when the rate changes? Here is an example. The gradient is
# always 1, $m$ is 0.9, and the rate is 0.1. After many updates $u$ is 10, and both forms step by $0.1 \cdot 10 = 1$.
# Now the rate falls to 0.01. The first form steps by $0.01 \cdot 10 = 0.1$ at once.
#
# **Guess first:** how far does the second form step?


# %%
def outside(rates: list[float], momentum: float = 0.9) -> list[float]:
    """The length of each step for a gradient of 1, if the rate stays outside of the sum."""
    total, steps = 1 / (1 - momentum), []
    for rate in rates:
        total = momentum * total + 1
        steps.append(rate * total)
    return steps


def inside(rates: list[float], momentum: float = 0.9) -> list[float]:
    """The length of each step for a gradient of 1, if the velocity contains the rate."""
    velocity, steps = rates[0] / (1 - momentum), []
    for rate in rates:
        velocity = momentum * velocity + rate
        steps.append(velocity)
    return steps


rates = [0.1] * 10 + [0.01] * 50
figure, ax = axes("update", "length of the step")
ax.plot(outside(rates), label="rate outside of the sum", markevery=10)
ax.plot(inside(rates), label="rate in the velocity", markevery=10)
ax.legend()
first = f"{outside(rates)[10]:.2f} and {inside(rates)[10]:.2f}"
show(
    figure,
    "Both lines are level at 1. At update 10 one falls to 0.1 at once, and the other one takes some tens of updates.",
    f"The rate falls from 0.1 to 0.01 at update 10. The lengths of this step are {first}.",
)

# %% [markdown]
# The second form steps by $0.9 \cdot 1 + 0.01 \cdot 1 = 0.91$. This is nine times as far as the first form goes. Its
# velocity still consists of gradients that were multiplied by the *old* rate. They lose their influence only slowly.
#
# ## The correction
#
# Goyal et al. 2017 (section 3) therefore correct $v$ when the rate changes, so that the second form does exactly what
# the first one does. They call this **momentum correction**. The velocity is $v = \eta u$, and $u$ must stay as it is.
# So the old velocity is divided by the old rate and multiplied by the new one. The gradient meets the new rate for the
# first time, so it needs no correction:


# %%
def corrected(weight: float, velocity: float, gradient: float, old: float, new: float) -> tuple[float, float]:
    """The weight and the velocity after an update of the second form, at which the rate changes from `old` to `new`."""
    velocity = 0.9 * velocity * new / old + new * gradient
    return weight - velocity, velocity


# %% [markdown]
# A check: on the parabola $w^2 / 4$, with a rate that changes twice, it must go exactly where PyTorch goes.

# %%
rates = [0.1] * 5 + [0.8] * 5 + [0.05] * 5
weight = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
optimizer = torch.optim.SGD([weight], lr=rates[0], momentum=0.9)
ours, velocity = 1.0, 0.0
for old, new in pairwise([rates[0], *rates]):
    ours, velocity = corrected(ours, velocity, 0.5 * ours, old, new)
    optimizer.param_groups[0]["lr"] = new
    weight.grad = 0.5 * weight.detach()
    optimizer.step()
print(f"PyTorch: {weight.item():.12f}   corrected: {ours:.12f}")

# %% [markdown]
# ## Does a network notice?
#
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
# - Where the rate *is* in the velocity (Keras's SGD, Caffe2), the correction is a matter of one update. Horovod's
#   callbacks for Keras do it by multiplying the momentum by new rate / old rate for just that update.
# - A warmup that climbs a little each update changes the rate by a small factor each time. There is little to correct.
#
# ## A list of what goes wrong
#
# Goyal et al. 2017 trained ResNet-50 on 256 GPUs with a global batch of 8,192 at no loss of accuracy. Much of their
# paper is a list of things that go wrong silently. If several workers train worse than one, check it line by line.
#
# | | do | because | claim, notebook |
# | --- | --- | --- | --- |
# | rate | base rate times $K$ (we search from the base rate on) | each image keeps its influence | C20, 05 |
# | warmup | climb from the base to the scaled rate over the first epochs | the early gradient turns too fast | C31, 06 |
# | momentum | correct the running sum of gradients when the rate changes, if it contains the rate (not in PyTorch) | or the old rate lives on | C24, here |
# | batch normalisation | per-worker statistics over a fixed per-worker batch; average the running ones (our own addition); its last scale in a residual block starts at 0 (our small network does not do this) | the loss then does not depend on $K$, and blocks begin as identities | C30, 06 |
# | aggregation | each worker has $n$ images: divide the sum of the workers' losses by $Kn$, not by $n$; sum once, average once | or the rate is scaled twice | C01 in 03, C23 in lab 13 |
# | weight decay | scale the rate, not the loss | a factor on the loss alone makes the weight decay weaker beside it | C23, lab 13 |
# | shuffling | one shuffle an epoch for all, divided among the workers | or some images come often and others never | C25, lab 13 |
#
# ## Summary
#
# - Momentum steps along a running sum of gradients. The rate can stand outside of this sum, or inside.
# - If it stands inside, the steps follow a change of the rate only after some tens of updates.
# - Momentum correction multiplies the velocity by new rate / old rate at the update where the rate changes.
#
# <details><summary>Question: a paper says "we correct the momentum at each drop of the rate". You write its recipe in
# PyTorch. What do you do about it?</summary>
#
# Nothing. PyTorch's velocity does not contain the rate, so the step changes at once. If you corrected it as well, the
# old gradients would be scaled twice.
#
# </details>
