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
# This is a lab: an experiment that belongs to lesson 01, and that no later lesson needs.

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
# In lesson 01, less noise was better. A common worry says the opposite. At a **saddle** the loss is least in one
# direction and greatest in another, and the gradient is zero. Noise is what pushes you off, and a large batch has too
# little of it.
#
# The smallest saddle is $f(x, y) = \frac{x^2}{2} - \frac{y^2}{2} + \frac{y^4}{4}$: it curves up along $x$ and down
# along $y$. So the line $y = 0$ is a ridge, with a minimum on each side of it, at $y = \pm 1$. Start on it and descend.
# The gradient of a batch is the true one plus noise of variance $1/B$.


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
# Close to the ridge each update multiplies $y$ by $1 + \eta$, noise or not. Noise only decides how far from the ridge
# that growth begins: about $\sqrt{\eta / (2B)}$. To grow from there to a fixed distance takes a number of updates that
# grows only with the *logarithm* of the batch size,
#
# $$ t \approx \frac{\ln(c\, B / \eta)}{2 \eta}. $$
#
# Without any noise, and exactly on the ridge, you would stay for ever. But a millionth beside it is enough, as the last
# line shows. A random start is never exactly on the ridge. This is one saddle. A path that meets many saddles, one
# after the other, can take very much longer without noise (Du and others 2017, arXiv:1705.10412).
#
# The experiment lets many walkers go and waits until half of them are away. Once with one rate for all batch sizes, and
# once with the rate multiplied by the batch size.
#
# **What to look at:** which of the two axes, updates or images, grows with the batch, and how fast? And what does the
# scaled rate change?

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
# "Stuck" is too strong a word, and there is something in it.
#
# - At one rate the **updates** grow, but only by the same amount each time the batch grows tenfold. The **images** grow
#   in proportion to the batch and a little more. If you count epochs, as most people do, a large batch does look stuck.
# - With the rate scaled, each image moves the weights as far as before. The images needed hardly change, and the
#   updates fall. It was the small steps that kept the large batch there, more than the missing noise.
# - That works as long as steps are small beside the surface's bends: $(1+\eta)^t$ is $e^{\eta t}$ for small rates only.
#   At the largest scaled rates you see the images creep up.
#
# High-dimensional losses have saddles in great numbers (Dauphin et al. 2014, arXiv:1406.2572), and noisy descent leaves
# them in reasonable time (Ge et al. 2015, arXiv:1503.02101). What the toy cannot tell is how often a real training run
# comes near one.

# %% [markdown]
# ## Summary
#
# - At one rate a large batch needs more updates to leave a saddle, as many more for each factor of ten in its size, and
#   far more images.
# - Scaling the rate takes most of that away, as long as the scaled rate stays small.
#
# <details><summary>Question: without noise, a walker that starts exactly on the ridge stays there for ever. Does that
# ever happen to a network?</summary>
#
# No. Its weights start at random numbers, and those are never exactly on the ridge. A path that comes near a saddle by
# chance leaves it exponentially fast. What the toy cannot tell is how many saddles a path meets.
#
# </details>
