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
# # 15 Lab of lesson 05: the path of an epoch, and sharpness
#
# **After this notebook you will be able to** say how far the weights get in an epoch with more workers, compute how
# sharp a minimum is, and say what a comparison of sharpness leaves open.
#
# **Time:** {{minutes_15}} minutes, and about two minutes of waiting. **Builds on:** 01 and 05.
#
# This is a lab: derivations and experiments that belong to lesson 05, and that no later lesson needs.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import numpy as np

from benchmarks.claims.lesson_05 import c15_path_of_an_epoch as c15
from cifar.data import updates_per_epoch
from lessons import axes, horovodrun, live, panels, saved, show

batch = 64  # images of a worker in an update

# %% [markdown]
# ## How far the weights get
#
# In lesson 05 each image counts less when there are more workers. To see it in a formula, look at the way that the
# weights go in one epoch, with plain SGD, rate $\eta$, and $N$ images in global batches of $Kb$:
#
# $$ w_{\text{end}} - w_{\text{start}} = -\sum_{t=1}^{N/(Kb)} \eta\, \hat g_t
#    = -\frac{\eta}{Kb} \sum_{i=1}^{N} \nabla \ell_i(w_{t(i)}). $$
#
# Each image's own gradient enters once, with the weight $\eta / (Kb)$. Leave the rate as it is and double the workers:
# every image's influence is halved. This is the claim. It can be measured by the **path** of an epoch, the sum of the
# lengths of its updates $\lVert w_{t+1} - w_t \rVert$.
#
# How fast should the path shrink with more workers? Two things shorten it. There are $K$ times fewer updates. And each
# update contains less noise, so it is shorter. If noise is small, only the first one counts, and the path is $K$ times
# shorter. If noise is large, both count, and the path is $K \sqrt K$ times shorter.
#
# The formula for all cases starts from the squared length of a batch's gradient. On average it is that of the true
# gradient $g$ plus noise. The noise of a single image has the mean squared length $\operatorname{tr} \Sigma$, and a
# batch of $Kb$ images has $Kb$ times less (notebook 01). So
#
# $$ \text{path} \approx \frac{N}{Kb}\, \eta \sqrt{\lVert g \rVert^2 + \frac{\operatorname{tr} \Sigma}{Kb}}
#    = \frac{N \eta \lVert g \rVert}{Kb} \sqrt{1 + \frac{\mathcal B}{Kb}},
#    \qquad \mathcal B = \frac{\operatorname{tr} \Sigma}{\lVert g \rVert^2}. $$
#
# There is the noise scale $\mathcal B$ again. Let us see what it does:

# %%
figure, ax = axes("workers", "path of an epoch, relative to one worker")
sizes = np.array(c15.SIZES)
for noise_scale in (1, 64, 10_000):
    path = np.sqrt(1 + noise_scale / (sizes * batch)) / sizes
    ax.loglog(sizes, path / path[0], label=f"noise scale {noise_scale:,}")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
steep = np.log(path[-1] / path[0]) / np.log(sizes[-1])
show(
    figure,
    "Three falling lines on logarithmic axes: the larger the noise scale, the steeper the line.",
    f"What the formula says for {batch} images a worker. Without noise the slope is -1; drowned in noise, {steep:.2f}.",
)

# %% [markdown]
# So, *for the same* $\lVert g \rVert$, the path shrinks at least as fast as $1/K$. If noise dominates, the path shrinks
# as $1 / K^{1.5}$. The faster fall is no loss, because averaging has only removed noise that pointed nowhere.
#
# **What to look at:** the slope of SGD's line beside $1/K$. And Adam's (Kingma and Ba 2014, arXiv:1412.6980): it
# divides a running mean of the gradient by a running root mean square of it, so an update does not get shorter when the
# gradient does. Where does that put its slope?

# %%
runs = live("C15", device=device, seed=seed)
# %%
result = saved("C15")
# %% [markdown]
# In the saved runs SGD's path falls as the number of workers to the power {{c15_sgd}}, and Adam's to the power
# {{c15_adam}}. So both fall a little more slowly than $1/K$. A slope steeper than -1 would show noise that was averaged
# away, and these runs do not show that. After an epoch of fewer updates a run is at an earlier stage, where gradients
# can be longer. This makes the slope flatter. Your own run is short, so its slope can be another one. Do not read the
# noise scale from it.
#
# ## One worker and four, on your machine
#
# Real workers, and the script with batch normalisation: one worker first, then several, which go on until they have
# made as many updates.

# %%
length = 2 * epochs
one = horovodrun("cifar_batch_norm.py", 1, epochs=length, images=images, batch_size=batch, seed=seed, device=device)

# %%
many = horovodrun(
    "cifar_batch_norm.py", workers, epochs=length * workers, images=images, batch_size=batch, seed=seed, device=device
)

# %%
figure, (left, right) = panels(("epochs", "test accuracy (%)"), ("updates", "test accuracy (%)"))
for size, lines in ((1, one), (workers, many)):
    accuracy = [100 * line["test_accuracy"] for line in lines]
    done = np.array([line["epoch"] for line in lines])
    left.plot(done, accuracy, label=f"{size} worker{'s' * (size > 1)}")
    right.plot(done * updates_per_epoch(images, batch, size), accuracy)
left.legend()
left.locator_params(axis="x", integer=True)
ends = f"{one[-1]['test_accuracy']:.1%} for one worker, {many[length - 1]['test_accuracy']:.1%} for {workers}"
same = f"{one[-1]['test_accuracy']:.1%} and {many[-1]['test_accuracy']:.1%}"
show(
    figure,
    f"The same two runs against epochs and against updates. After {length} epochs: {ends}. Equal updates: {same}.",
    f"After {length} epochs: {ends}. After as many updates as one worker made: {same}. One run each: no verdict.",
)

# %% [markdown]
# Read the two panels as two questions. On the left: *how good is the network when each image has been used so many
# times?* On the right: *how good is it after so many steps?* A test of a network with batch normalisation uses
# **running statistics**: means over the batches of the last updates. At the start of training they have made-up values,
# and after few updates these values are still a part of the mean. So the first points are lower than the network
# deserves, above all those of several workers.
#
# ## The critical batch, seen from the updates
#
# Notebook 01 estimated the noise scale from gradients alone. The other half of that claim is about the number of
# updates that it takes to reach a given loss, when each batch size has its own best rate:
#
# $$ S(B) = S_{\min} \left( 1 + \frac{\mathcal B}{B} \right). $$
#
# You know this formula from notebook 01. Read it from small batches to large ones.
#
# - *Well below* the critical batch, twice the workers need half the updates. The scaled rate pays for the larger batch
#   in full.
# - *From half the critical batch to the whole*, the updates fall by a third, from $3 S_{\min}$ to $2 S_{\min}$.
# - *Above it*, twice the batch saves few updates, but the run needs almost twice as many images. The linear rule is too
#   bold there as well: at the critical batch, the best rate is half of what the rule says.
#
# ## How sharp is a minimum?
#
# **Sharpness** is the curvature of the loss in its steepest direction. Near a minimum the loss is about
# $L(w + v) \approx L(w) + \tfrac12 v^\top H v$. Here $H$ is the **Hessian**, the matrix of second derivatives. Its
# largest eigenvalue is the curvature in the steepest direction.
#
# For half a million weights $H$ would have $10^{11}$ entries, so nobody stores it. But we can multiply it by a vector:
# the product $Hv$ is the gradient of the number $g \cdot v$ (Pearlmutter 1994). Multiply a random vector by $H$ again
# and again. It turns towards the direction with the largest eigenvalue (largest in size, whatever its sign), and its
# length grows by this eigenvalue each time. Here it is on a matrix that we can look at:

# %%
import torch

from benchmarks.methods.hessian import largest_eigenvalue

matrix = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
vector = torch.ones(3)
for step in range(6):
    vector = matrix @ vector / vector.norm()
    print(f"after {step + 1} products the vector is {vector.norm():.4f} times as long as before")
print(f"largest eigenvalue: {torch.linalg.eigvalsh(matrix)[-1]:.4f}")
print(f"benchmarks/methods/hessian.py finds {largest_eigenvalue(lambda v: matrix @ v, torch.ones(3)):.4f}")

# %% [markdown]
# Our function stops as soon as a product changes the estimate by less than one per cent. So its answer is a little
# smaller than the true one. This is exact enough to compare networks.
#
# ## Do large batches find sharp minima?
#
# Keskar et al. 2016 (arXiv:1609.04836) reported that large batches end in sharp minima, and that these networks do
# worse on new images. Perhaps the question is not how far training got. Perhaps it is where it ended.
#
# One worker and eight train the small ResNet with 32 images each, with five seeds, for 12 epochs. (For equal updates,
# eight workers train for 96.) There are only 2,048 training images, without distortions, so that they can come near a
# minimum at all. In these measurements the network is in evaluation mode, so batch normalisation uses its running
# statistics. We measure the large batch twice: at equal epochs and at equal updates.
#
# **What to look at:** the eigenvalues (one point for each seed, on a logarithmic axis) from left to right. Then the
# training loss of each, in the caption. On the right, the test accuracy: does it come back at equal updates?

# %%
result = saved("C29")

# %% [markdown]
# Does the large batch do worse on new images because its minimum is sharper? This figure cannot say so. Five things to
# keep in mind, because this claim is quoted more often than it is tested:
#
# - **Sharpness fades with the loss.** The second derivative of cross-entropy is made of products $p(1 - p)$ of the
#   predicted probabilities. They go to zero as the network becomes sure of its training images. At equal epochs the
#   large batch has the higher training loss ({{c29_loss_epochs}} against {{c29_loss_small}}), so a part of its
#   sharpness is only this. At equal updates it has the lower loss ({{c29_loss_updates}}), and is still
#   {{c29_times_updates}} times as sharp. So at equal updates, this cannot be the reason.
# - **The large batch may not have arrived.** At equal epochs it has made fewer updates, so it may still be on its way
#   to a minimum. Hoffer et al. 2017 (arXiv:1705.08741) found that much of the gap goes away when the large batch trains
#   longer. Here most of the sharpness goes away, and the accuracy does not come back: it is {{c29_epochs}} % at equal
#   epochs, {{c29_updates}} % at equal updates, and {{c29_small}} % with the small batch.
# - **It depends on the images.** In the first experiment of lesson 05, equal updates healed everything. There the
#   images are shifted and mirrored at random, and are never learnt by heart.
# - **Sharpness depends on the rate.** A large rate cannot rest in a very steep valley: it jumps from one side to the
#   other, and out. Gradient descent with all images and the rate $\eta$ cannot stay where the largest eigenvalue is
#   much above $2/\eta$. (With momentum $m$ the limit is $2(1+m)/\eta$.) For much of training it stays near this limit
#   (Cohen et al. 2021, arXiv:2103.00065). All runs here have one rate, so they cannot tell what another rate would do.
# - **Sharpness depends on how you write the network.** With ReLU, multiply one layer by 10 and divide the next by 10.
#   The function is the same, and the eigenvalue is not (Dinh et al. 2017, arXiv:1703.04933). Batch normalisation has
#   the same effect. So sharpness can accompany a low accuracy without being its cause.
#
# Others did not find the effect. Shallue et al. 2018 (arXiv:1811.03600) trained many networks with searched rates. They
# write: "we find no evidence that larger batch sizes degrade out-of-sample performance".
#
# ## Summary
#
# - At a fixed rate the path of an epoch shrinks about as $1/K$ with the number of workers $K$.
# - Sharpness is the largest eigenvalue of the Hessian. Products of the Hessian with a vector are enough to find it.
# - Sharpness changes with the rate, with the loss, and with the way in which a network is written.
#
# <details><summary>Question: you double the workers, and the path of an epoch falls to almost exactly half. What does
# that tell you of the noise scale?</summary>
#
# Little. *If* the gradient itself is as long as before, noise is already small in the gradient of the batch. But a run
# of fewer updates is at an earlier stage, where gradients can be longer, and that hides what averaging takes away.
# Measure the noise scale itself (notebook 01). (With Adam it tells you less still: noise does not make its updates
# longer in the first place.)
#
# </details>
