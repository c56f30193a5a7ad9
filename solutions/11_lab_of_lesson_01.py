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
# # 11 Lab of lesson 01: saddle points
#
# **After this notebook you will be able to** say how long SGD stays on a saddle, and whether a large batch stays
# longer.
#
# **Time:** {{minutes_11}} minutes, besides the waiting for its runs. **Builds on:** 01.
#
# This is a lab. Its experiment belongs to lesson 01, and no later lesson needs it.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import numpy as np
from IPython.display import Markdown

from benchmarks.claims.lesson_01 import c11_saddle_points as c11
from lessons import axes, live, saved, show

# %% [markdown]
# ## Does a large batch get stuck at saddle points?
#
# In lesson 01, less noise was better. A common worry says the opposite. At a **saddle** the gradient is zero. The loss
# is least in one direction and greatest in another. Noise pushes SGD off, and a large batch may have too little of it.
#
# Here is a simple saddle: $f(x, y) = \frac{x^2}{2} - \frac{y^2}{2} + \frac{y^4}{4}$. It curves up along $x$ and down
# along $y$. So the line $y = 0$ is a ridge, and there is a minimum on each side, at $y = \pm 1$. A walker starts on the
# ridge and descends. The gradient of a batch of $B$ images is the true one plus noise of variance $1/B$. **Guess:** how
# much longer does it stay there with batches of 4,096 than with batches of 1?


# %%
def walk(batch, rate=0.01, updates=1500, start=0.0):
    y, path, draw = start, [], np.random.default_rng(seed)
    for _ in range(updates):
        y -= rate * (y**3 - y + draw.normal() / np.sqrt(batch))
        path.append(y)
    return np.abs(path)


# %%
figure, ax = axes("update", "distance from the saddle, |y|")
for batch in (1, 64, 4096):
    ax.semilogy(walk(batch), marker="", label=f"batches of {batch}")
ax.semilogy(walk(np.inf, start=1e-6), marker="", label="no noise, started 0.000001 beside the ridge")
ax.legend()
show(
    figure,
    "Four lines, distance from the saddle by update: all end at 1, the larger the batch, the later.",
    "One walker for each batch size. Once it is off the ridge, it moves away exponentially, whatever the batch.",
)

# %% [markdown]
# Close to the ridge, each update multiplies $y$ by $1 + \eta$, with or without noise. Noise only decides where this
# growth begins: about $\sqrt{\eta / (2B)}$ from the ridge. The number $t$ of updates from there to a fixed distance
# grows only with the *logarithm* of the batch size:
#
# $$ t \approx \frac{\ln(c\, B / \eta)}{2 \eta}. $$
#
# The number $c$ depends on the fixed distance. Without noise, a walker exactly on the ridge stays for ever. But a
# millionth beside it is enough, as the last line shows. This is only one saddle. A path that meets many saddles can
# take very much longer without noise (Du and others 2017, arXiv:1705.10412).
#
# The experiment lets many walkers go, and waits until half of them are away. First all batch sizes have the same rate.
# Then the rate is multiplied by the batch size.
#
# **What to look at:** which grows with the batch, the updates or the images, and how fast? What does the scaled rate
# change?

# %%
runs = live("C11", device=device, seed=seed)
# %%
result = saved("C11")

# %%
batches = np.array([1, 10, 100, 1000, 10_000])
updates = c11.theory(c11.BASE_RATE, batches)
rows = "\n".join(f"| {b:,} | {u:.0f} | {u * b:,.0f} |" for b, u in zip(batches, updates, strict=True))
Markdown("What the theory says at one rate:\n\n| batch size | updates | images |\n|---:|---:|---:|\n" + rows)

# %% [markdown]
# The word "stuck" is too strong, but the worry is partly right.
#
# - At one rate, a ten times larger batch always adds the same number of **updates**. The number of **images** grows in
#   proportion to the batch, and a little more. Most people count epochs. To them, a large batch looks stuck.
# - With the scaled rate, each image moves the weights as far as before. The number of images hardly changes, and the
#   number of updates falls. So the small steps kept the large batch there, more than the missing noise did.
# - Scaling works as long as steps are small compared with the bends of the surface. The growth $(1+\eta)^t$ is about
#   $e^{\eta t}$ for small rates only. At the largest scaled rates, the number of images slowly rises.
#
# Losses with many weights have very many saddles (Dauphin et al. 2014, arXiv:1406.2572). Noisy descent leaves them in
# reasonable time (Ge et al. 2015, arXiv:1503.02101). This small example cannot tell how often real training comes near
# a saddle.

# %% [markdown]
# ## Summary
#
# - At one rate, a large batch needs more updates to leave a saddle, and far more images. Each factor of ten in its size
#   adds the same number of updates.
# - Scaling the rate takes most of that away, as long as the scaled rate stays small.
#
# <details><summary>Question: without noise, a walker that starts exactly on the ridge stays there for ever. Does that
# ever happen to a network?</summary>
#
# No. Its weights start at random numbers, never exactly on the ridge. A path that comes near a saddle by chance leaves
# it exponentially fast.
#
# </details>
