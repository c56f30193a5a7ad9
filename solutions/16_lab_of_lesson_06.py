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
# This is a lab. It belongs to lesson 06, and no later lesson needs it. PyTorch's optimizers do not need the correction
# shown here. So you can leave out the part about momentum if you use only PyTorch. You need it for some other
# libraries, and to read papers. (In LAMB $m$ and $v$ mean something else.)

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
# **velocity**. The newest gradient counts fully. Each update multiplies the older ones by $m$, usually 0.9. So two
# updates later a gradient counts $0.9^2 = 0.81$ times as much. Directions that persist add up, and noise partly
# cancels.
#
# There are two ways to write it. PyTorch keeps the rate $\eta$ outside of the sum:
#
# $$ u \leftarrow m\,u + g, \qquad w \leftarrow w - \eta\, u. $$
#
# Other libraries and many papers put the rate into the sum. The velocity is then $v = \eta u$:
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
# velocity still contains gradients that were multiplied by the *old* rate. These lose their influence only slowly.
#
# ## The correction
#
# Goyal et al. 2017 (section 3) therefore correct $v$ when the rate changes. The second form then does exactly what the
# first one does. They call this **momentum correction**. In the velocity $v = \eta u$, the sum $u$ must stay as it is.
# So the old velocity is divided by the old rate and multiplied by the new one. In the example it becomes
# $1 / 0.1 \cdot 0.01 = 0.1$. The new gradient is multiplied by the new rate only:


# %%
def corrected(weight: float, velocity: float, gradient: float, old: float, new: float) -> tuple[float, float]:
    """The weight and the velocity after an update of the second form, at which the rate changes from `old` to `new`."""
    velocity = 0.9 * velocity * new / old + new * gradient
    return weight - velocity, velocity


# %% [markdown]
# Here the rate changes twice, on the parabola $w^2 / 4$. Does our function go exactly where PyTorch goes?

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
# Now one worker trains the small ResNet, with batches of 128 images and five seeds. After 200 updates the rate is
# multiplied or divided by eight. Then 60 more updates follow.
#
# **What to look at:** the lengths of the updates are divided by the mean length before the change. At 1 an update is as
# long as before. Which line follows the rate at once? Does the other one need longer after the fall or after the rise?
# Then look at the third panel. Does the *loss* show a difference?

# %%
result = saved("C24")

# %% [markdown]
# After a fall of the rate, the old velocity is too long. Without correction the steps stay too long for some tens of
# updates. So the benefit of the lower rate comes late. The numbers show it: after the fall, the loss is higher without
# correction. After a rise, the old velocity is too short. Goyal et al. expected trouble there. After the rise, no
# difference of the loss was seen.
#
# What does it mean for your programs?
#
# - **PyTorch's SGD needs no correction.** Neither its velocity nor Adam's running means contain the rate.
# - In Keras's SGD and in Caffe2 the velocity *does* contain the rate. There, only one update is corrected. Horovod's
#   callbacks for Keras multiply the momentum by new rate / old rate for just this update.
# - A warmup that climbs a little at each update changes the rate by a small factor. So there is little to correct.
#
# ## A list of what goes wrong
#
# Goyal et al. 2017 trained ResNet-50 on 256 GPUs with a global batch of 8,192, and lost no accuracy. Much of their
# paper is a list of things that go wrong silently. Do several workers train worse than one? Then check it line by line.
#
# | | do | because | claim, notebook |
# | --- | --- | --- | --- |
# | rate | base rate times $K$ (we search from the base rate on) | each image keeps its influence | C20, 05 |
# | warmup | climb from the base to the scaled rate over the first epochs | the early gradient turns too fast | C31, 06 |
# | momentum | correct the velocity when the rate changes, if it contains the rate (not in PyTorch) | otherwise the old rate stays in the sum | C24, here |
# | batch normalisation | per-worker statistics over a fixed per-worker batch, averaged running ones (our own addition), and a last scale in a residual block that starts at 0 (our small network does not do this) | the loss then does not depend on $K$, and blocks begin as identities | C30, 06 |
# | aggregation | sum once and average once: divide the sum of the workers' losses by $Kn$, not by $n$ (each worker has $n$ images) | otherwise the rate is scaled twice | C01 in 03, C23 in lab 13 |
# | weight decay | scale the rate, not the loss | a factor on the loss alone makes weight decay weaker in comparison | C23, lab 13 |
# | shuffling | one shuffle an epoch for all, divided among the workers | otherwise some images come often and others never | C25, lab 13 |
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
# You do nothing. PyTorch's velocity does not contain the rate, so the step changes at once. A correction would scale
# the old gradients twice.
#
# </details>
