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
# # 15 Lab of lesson 05: the path of an epoch, a late schedule, and sharpness
#
# **After this notebook you will be able to** say how far the weights get in an epoch with more workers, judge a
# schedule that comes too late, compute how sharp a minimum is, and say what a comparison of sharpness leaves open.
#
# **Time:** {{minutes_15}} minutes, and about two minutes of waiting. **Builds on:** 01 and 05.
#
# This is a lab. Its derivations and experiments belong to lesson 05, and no later lesson needs them.

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
# In lesson 05 each image counts less when there are more workers. Here is a formula for it. Let $K$ workers train by
# plain SGD, with the rate $\eta$ and $b$ images each. The batch's gradient is $\hat g_t$, and the loss of image $i$ is
# $\ell_i$. An epoch of $N$ images moves the weights by
#
# $$ w_{\text{end}} - w_{\text{start}} = -\sum_{t=1}^{N/(Kb)} \eta\, \hat g_t
#    = -\frac{\eta}{Kb} \sum_{i=1}^{N} \nabla \ell_i(w_{t(i)}). $$
#
# The gradient of each image enters once, at its update $t(i)$, with the factor $\eta / (Kb)$. If you double the workers
# and keep the rate, the influence of every image is halved. We can measure this by the **path** of an epoch, the sum of
# the lengths of its updates $\lVert w_{t+1} - w_t \rVert$.
#
# How fast does the path shrink with more workers? There are $K$ times fewer updates. And each update contains less
# noise, so it is shorter. With little noise only the fewer updates count, and the path is $K$ times shorter. With much
# noise both count, and the path is $K \sqrt K$ times shorter.
#
# One formula covers all cases. On average, the squared length of a batch's gradient is the squared length of the true
# gradient $g$ plus noise. The noise of a single image has the mean squared length $\operatorname{tr} \Sigma$. For a
# batch of $Kb$ images it is $Kb$ times smaller (notebook 01). So
#
# $$ \text{path} \approx \frac{N}{Kb}\, \eta \sqrt{\lVert g \rVert^2 + \frac{\operatorname{tr} \Sigma}{Kb}}
#    = \frac{N \eta \lVert g \rVert}{Kb} \sqrt{1 + \frac{\mathcal B}{Kb}},
#    \qquad \mathcal B = \frac{\operatorname{tr} \Sigma}{\lVert g \rVert^2}. $$
#
# This $\mathcal B$ is the noise scale again. What does it do to the path?

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
# So with the *same* $\lVert g \rVert$, the path shrinks at least as fast as $1/K$. With very much noise it shrinks as
# $1 / K^{1.5}$. The faster fall does no harm, because averaging has only removed noise.
#
# **What to look at:** compare the slope of SGD's line with $1/K$. Then look at Adam's line (Kingma and Ba 2014,
# arXiv:1412.6980). Adam divides a running mean of the gradient by its running root mean square. So a shorter gradient
# does not make the update shorter. Which slope do you expect?

# %%
runs = live("C15", device=device, seed=seed)
# %%
result = saved("C15")
# %% [markdown]
# In the saved runs the path falls as a power of $K$. The power is {{c15_sgd}} for SGD and {{c15_adam}} for Adam. So
# both fall a little more slowly than $1/K$. A slope steeper than -1 would show noise that was averaged away, and these
# runs do not show that. After fewer updates a run is at an earlier stage, where gradients can be longer. This makes the
# slope flatter. Your own run is short, so its slope can differ. Do not read the noise scale from it.
#
# ## One worker and four, on your machine
#
# Now real workers run the script with batch normalisation. One worker trains first. Then several train until they have
# made as many updates. Guess: are they better or worse then?

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
# The left panel asks: *how good is the network when each image has been used so many times?* The right one asks: *how
# good is it after so many updates?* A test with batch normalisation uses **running statistics**. These are means over
# the batches of the last updates. They begin with made-up values. After few updates these are still a part of the mean.
# So the first points are too low, above all those of several workers.
#
# ## The critical batch, seen from the updates
#
# Notebook 01 estimated the noise scale from gradients alone. The noise scale also predicts how many updates $S$ reach a
# given loss, when each batch size $B$ has its own best rate:
#
# $$ S(B) = S_{\min} \left( 1 + \frac{\mathcal B}{B} \right). $$
#
# You know this formula. Read it from small batches to large ones.
#
# - *Well below* the critical batch, twice the workers need half the updates. The scaled rate makes up for the missing
#   updates in full.
# - *From half the critical batch to the whole*, the updates fall by a third, from $3 S_{\min}$ to $2 S_{\min}$.
# - *Above it*, twice the batch saves few updates, but the run needs almost twice the images. The linear rule gives too
#   high a rate there. At the critical batch, the best rate is half of what the rule says.
#
# ## The schedule that came too late
#
# Lesson 05 said that a schedule should count epochs. Does it matter for accuracy? Four workers train the small ResNet
# with 64 images each, for 6 epochs of 10,240 images, with five seeds. The rate is halved every epoch. One program
# counts epochs ("by epoch"). The other contains the update numbers of one worker ("by step"), so its rate falls four
# times too late. Each program runs with two starting rates: that of one worker, the **base rate**, and four times that
# rate, the *scaled rate*. People claim that "by epoch" ends higher.
#
# **Guess first.** Which of these four kinds of run ends highest?
#
# **What to look at:** on the left, the rates that the runs really used. On the right, which program ends higher, and
# where one worker ends.

# %%
result = saved("C06", verdict=False)

# %% [markdown]
# The left panel is arithmetic. The right panel is a surprise. **The late schedule ends higher**: by {{c06_base}} points
# from the base rate, and by {{c06_scaled}} points from the scaled rate. So the claim is false here.
#
# Should one write schedules in updates, then? No: then one worker and four have different schedules, and cannot be
# compared. Why did the late one win? Look at one worker, at {{c06_one}} %. From the base rate, the late schedule brings
# four workers to {{c06_by_step}} %. They make a quarter of the updates. A rate that stays high for longer makes up for
# this, by accident. From the scaled rate, both schedules end far below one worker: that rate was too high from the
# first update on.
#
# Does this contradict the linear rule? No. The rule holds only for batches below the bend, and lesson 05 found the bend
# at some tens to a hundred images. One worker with 64 images is already there, and four workers with 256 are beyond it.
# (That was a similar network, but without batch normalisation.) So "multiply by $K$" is only the first rate
# that you try. Try lower ones, too.
#
# ## How sharp is a minimum?
#
# Take a small step $v$ away from a minimum $w$. How much does the loss rise? Its new value is
# $L(w + v) \approx L(w) + \tfrac12 v^\top H v$. Here $H$ is the **Hessian**, the matrix of second derivatives.
# **Sharpness** is the curvature of the loss in its steepest direction. This is the largest eigenvalue of $H$.
#
# For half a million weights $H$ has over $10^{11}$ entries, so nobody stores it. But we can multiply it by a vector.
# The product $Hv$ is the gradient of the number $g \cdot v$ (Pearlmutter 1994). Multiply a random vector by $H$ again
# and again. It turns towards the direction with the largest eigenvalue (in size, whatever its sign). Then each product
# multiplies its length by this eigenvalue. Here is a small example:

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
# Our function stops when a product changes the estimate by less than one per cent. Its answer is a little too small,
# but exact enough to compare networks.
#
# ## Do large batches find sharp minima?
#
# Keskar et al. 2016 (arXiv:1609.04836) reported that large batches end in sharp minima, and that these networks do
# worse on new images. So far we asked how far training gets. Perhaps we must ask where it ends.
#
# One worker and eight workers train the small ResNet for 12 epochs, with 32 images each and five seeds. The eight have
# the large batch. We measure it twice: at equal epochs, and at equal updates (96 epochs). There are only 2,048 training
# images, without distortions, so that the networks can come near a minimum. We measure in evaluation mode, so batch
# normalisation uses its running statistics.
#
# **What to look at:** compare the eigenvalues from left to right. Each seed has one point, and the axis is logarithmic.
# Then compare the training losses in the caption. On the right is the test accuracy. Does it come back at equal
# updates?

# %%
result = saved("C29")

# %% [markdown]
# Does the large batch do worse on new images *because* its minimum is sharper? This figure cannot tell. Keep five
# things in mind:
#
# - **Sharpness fades with the loss.** The second derivative of cross-entropy is made of products $p(1 - p)$ of the
#   predicted probabilities. These products go to zero as the network becomes sure of its training images. At equal
#   epochs the large batch has the higher training loss ({{c29_loss_epochs}} against {{c29_loss_small}}). A part of its
#   sharpness comes only from this. At equal updates it has the lower loss ({{c29_loss_updates}}). But it is still
#   {{c29_times_updates}} times as sharp. So at equal updates, the loss cannot be the reason.
# - **The large batch may not have arrived.** At equal epochs it has made fewer updates, so it may still be on its way
#   to a minimum. Hoffer et al. 2017 (arXiv:1705.08741) found that much of the gap goes away when the large batch trains
#   longer. Here most of the sharpness goes away, and the accuracy does not come back. It is {{c29_epochs}} % at equal
#   epochs, {{c29_updates}} % at equal updates, and {{c29_small}} % with the small batch.
# - **It depends on the images.** In the first experiment of lesson 05, the accuracy did come back at equal updates.
#   There the images are shifted and mirrored at random, and are never learnt by heart.
# - **Sharpness depends on the rate.** With a large rate, the weights cannot rest in a very steep valley. They jump from
#   one side to the other, and out. Gradient descent with all images and the rate $\eta$ cannot stay where the largest
#   eigenvalue is much above $2/\eta$. (With momentum $m$ the limit is $2(1+m)/\eta$.) For much of training the
#   eigenvalue is near this limit (Cohen et al. 2021, arXiv:2103.00065). All runs here have the same rate, so they do
#   not show this.
# - **Sharpness depends on how you write the network.** With ReLU, multiply one layer by 10 and divide the next by 10.
#   The function stays the same, but the eigenvalue changes (Dinh et al. 2017, arXiv:1703.04933). Batch normalisation
#   has the same effect. So sharpness can accompany a low accuracy without being its cause.
#
# Others did not see large batches do worse. Shallue et al. 2018 (arXiv:1811.03600) trained many networks with searched
# rates. They write: "we find no evidence that larger batch sizes degrade out-of-sample performance".
#
# ## Summary
#
# - At a fixed rate the path of an epoch shrinks about as $1/K$ with the number of workers $K$.
# - A schedule that comes too late can end higher by accident: the high rate makes up for missing updates.
# - Sharpness is the largest eigenvalue of the Hessian. We find it by products of the Hessian with a vector.
# - Sharpness changes with the rate, the loss, and the way in which a network is written.
#
# <details><summary>Question: you double the workers, and the path of an epoch falls to almost exactly half. What does
# that tell you of the noise scale?</summary>
#
# It tells you little. *If* the gradient is as long as before, the batch's gradient has little noise. But a run of fewer
# updates is at an earlier stage. There gradients can be longer, and this hides what averaging removes. Measure the
# noise scale itself (notebook 01). With Adam the path tells even less, because noise does not make its updates longer.
#
# </details>
