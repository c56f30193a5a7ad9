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
# # 12 Lab of lesson 02: loss and accuracy, distorted images, mean images, prefetching
#
# **After this notebook you will be able to** say what the printed loss tells you and what it hides. You can also say
# when a distortion of the images raises the accuracy, why one cannot train on the mean image of a batch, and which side
# of a pipeline sets the pace.
#
# **Time:** {{minutes_12}} minutes, besides the waiting for its runs. **Builds on:** 02.
#
# This is a lab. Its experiments belong to lesson 02, and no later lesson needs them. Take those that you want to see.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import torch
from IPython.display import Markdown

from benchmarks.claims.lesson_02 import c18_mean_activation as c18
from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from benchmarks.methods import augmentations
from cifar import data
from lessons import live, panels, saved, show

train, test = data.load(limit=images)

# %% [markdown]
# ## Should a lower loss not mean a higher accuracy?
#
# You see the printed loss fall, and you expect the accuracy to rise. Here are two made-up networks, with two classes
# and five images. **Guess:** which has the lower loss, and which is right more often?

# %%
modest = torch.tensor([0.60, 0.55, 0.60, 0.40, 0.45])  # probability of the right class; two classes
bold = torch.tensor([0.99, 0.99, 0.99, 0.99, 0.0001])
for name, right_class in (("modest", modest), ("bold", bold)):
    accuracy = (right_class > 0.5).float().mean()
    print(f"{name}: loss {-right_class.log().mean():.2f} nats, accuracy {accuracy:.0%}")

# %% [markdown]
# `bold` is right more often, but its loss is higher. It is very sure and wrong about one image, and this image makes
# the mean large. So a lower loss does not always mean a higher accuracy.
#
# Three things stand between the printed loss and the accuracy.
#
# - **The measure.** Accuracy asks which class comes first. Cross-entropy asks how sure the network is of the right
#   class.
# - **The split.** The loss is measured on the training images, and the accuracy on the test images. A network can learn
#   its training images by heart.
# - **The moment.** The printed loss is a mean over the epoch, on distorted images, while the weights were changing.
#
# Now with real networks. We train the same network by five recipes.
#
# - `plain` trains on the images as they are.
# - `short` trains for fewer epochs.
# - `distorted` shifts and mirrors the images at random.
# - `decayed` has **weight decay**: each update also makes the weights a little smaller.
# - `smoothed` has **label smoothing**: the target is 82 % for the right class, and not 100 %. The other 18 % are
#   divided among the other classes.
#
# All five are judged on undistorted images, of the training and of the test split. **Guess first:** which has the
# lowest training loss, and which the highest test accuracy?
#
# **What to look at:** in each panel, do the points fall from the upper left to the lower right? The *rank correlation*
# compares two orders of the recipes, by low loss and by high accuracy. It is 1 for equal orders, near 0 for unrelated
# ones, and -1 if one is the reverse of the other.

# %%
_ = saved("C07")

# %% [markdown]
# `plain` has the lowest training loss, and `distorted` has the highest test accuracy. So compare runs by what you want,
# on images that they have not seen. The training loss answers other questions. Is it finite? Does it fall at all? Does
# it fall faster than with another learning rate?

# %% [markdown]
# ## Distortions: make the task harder, learn more
#
# A network can learn images by heart. So do not show it the same image twice. TensorFlow's CIFAR-10 tutorial changes
# images in five ways. Here is each change on one image. (We altered one. The tutorial cuts out 24 × 24 pixels. We widen
# the image by 4 mirrored pixels on each side and cut out 32 × 32. So all networks have images of one size.) **Guess:**
# which change is the same in each epoch?

# %%
torch.manual_seed(seed)
one = train.images[4:5]
changes = {
    "none": augmentations.unchanged, "shift": augmentations.random_crop, "mirror": lambda image: image.flip(-1),
    "brightness": augmentations.random_brightness, "contrast": augmentations.random_contrast,
}  # fmt: skip
shown = {name: change(one).float() for name, change in changes.items()}
white = augmentations.Whiten()(data.normalise(one))
shown["whitening"] = 255 * (white - white.min()) / (white.max() - white.min())  # stretched, to be seen at all
figure, places = panels(*[("", "")] * len(shown))
for ax, (name, image) in zip(places, shown.items(), strict=True):
    ax.imshow(image[0].clamp(0, 255).permute(1, 2, 0).byte().numpy())
    ax.set(title=name, xticks=[], yticks=[])
show(
    figure,
    "One training image six times: as it is, and changed in five ways.",
    "The tutorial's changes, one by one, its crop as a shift.",
)

# %% [markdown]
# Four of them draw random numbers, so each epoch shows another version. **Whitening** draws none. It always gives each
# image mean 0 and standard deviation 1. (The tutorial uses this word. The exact word is *standardising*.) Whitening is
# no distortion but a preparation, so the test images need it as well.
#
# One thing follows without any run. Brightness adds one number to all values of an image. Whitening takes the mean
# away, and this number with it:

# %%
torch.manual_seed(seed)
brighter = augmentations.random_brightness(train.images[:100])
whiten = augmentations.Whiten()
gap = (whiten(data.normalise(brighter)) - whiten(data.normalise(train.images[:100]))).abs().max()
print(f"largest value added: {(brighter - train.images[:100]).abs().max():.0f} of 255; left after whitening: {gap:.1e}")

# %% [markdown]
# The claim has two parts. Distortions raise the training loss, since the task is harder. They still raise the test
# accuracy. The experiment trains with each one alone, with none, and with all. It compares them seed by seed.
# **Guess:** which of them raise the accuracy?
#
# **What to look at:** which intervals touch the dashed line at 0? We cannot tell such a change from luck. A single seed
# has no interval, so a live run's verdict can only be "no difference seen".

# %%
_ = live("C09", device=device, seed=seed)

# %%
_ = saved("C09")

# %% [markdown]
# Ask of each distortion: *does it turn an image into another one that could have been in the test set?* A mirrored
# horse could be there, and so could a horse a little further to the left. An image with a fifth of its contrast would
# hardly be there. Look for a row with a higher training loss and no higher accuracy. This distortion made the task
# harder, but not more like the real one.
#
# Distortions also need time. They help against learning by heart, so they pay when a run has enough epochs for that.

# %% [markdown]
# ## Could one back-propagate a mean image?
#
# Lesson 02 shows that training needs memory for the activations of each image. So why not average them? We keep one
# mean activation for each layer, and send one error back. We pay for one image, however large the batch is. **Guess:**
# is the gradient still right?
#
# For one image, let $a$ be the input of a layer, and let $\delta$ be the error that comes back to the layer. The
# gradient of a weight is a mean of products $\delta a^\top$. The proposal is a product of means:
#
# $$\overline{\delta a^\top} = \bar\delta\,\bar a^\top + \operatorname{Cov}(\delta, a).$$
#
# The covariance ties *this* error to *this* input. Without it, nothing says which images need which class.
#
# We compare the true gradient with the proposed one. Their cosine is 1 when they have the same direction. There are
# three cases.
#
# - Take a network without activation functions, with a squared error. All errors are linear in the image. So the mean
#   error of each layer is exactly the error of the mean image. A **bias**'s gradient is just the mean error, so the
#   cosine is 1 for the biases. A **weight**'s gradient is not linear in the image. So the proposal loses the covariance
#   even here.
# - With cross-entropy, the softmax makes the errors non-linear.
# - With ReLU, the activations are non-linear.
#
# In the last two cases, nothing promises the biases a cosine of 1. The next cell checks the first case.

# %%
torch.manual_seed(seed)
linear, (inputs, targets) = torch.nn.Sequential(torch.nn.Linear(5, 3)).double(), torch.randn(2, 64, 5).double()
targets = targets[:, :3] + inputs[:, :3]
weight, bias = c18.true_gradient(linear, c18.squared, inputs, targets)
mean_weight, mean_bias = c18.mean_gradient(linear, c18.squared, inputs, targets)
error = linear(inputs) - targets
covariance = (error - error.mean(0)).T @ (inputs - inputs.mean(0)) / len(inputs)
print(f"biases differ by {(bias - mean_bias).abs().max():.0e}, weights by {(weight - mean_weight).abs().max():.2f}")
print(f"weights differ by the covariance, up to {(weight - mean_weight - covariance).abs().max():.0e}")

# %% [markdown]
# **What to look at:** the left panel shows the weights, and the middle one shows the biases. With one image, mean and
# image are the same. Compare this with the largest batch. In the middle, does cross-entropy or ReLU do more harm? On
# the right, can such a gradient still train?

# %%
_ = live("C18", device=device, seed=seed)

# %%
_ = saved("C18")

# %% [markdown]
# You may read that the mean is exact for linear networks. This is true for the activations. With a squared error, it is
# also true for the errors and the biases. It is not true for the weights, as the experiment shows. They are nearly all
# of the parameters. A batch is not a mean image. We may average *gradients*, each computed from its own images. Data
# parallelism does only this.
#
# ## Who sets the pace on your machine?
#
# Lesson 02 showed two pipelines that prepare images for a network: `vectorised` and `decoded`. With **prefetching**, a
# second thread prepares the next batch while the network computes. The experiment has three more:
#
# - `loop` prepares image by image in Python, as many programs do it.
# - `cached` distorts the images once, keeps them, and only fetches them. So the network sees the same version of each
#   image in every epoch, and can learn it by heart.
# - `loop small network` has hardly anything to compute.
#
# **Guess:** which of the five gains most from prefetching?
#
# **What to look at:** on the left, which side is longer in each bar: the update, or the three preparing stages? On the
# right, each pipeline has two bars, without and with prefetching. A bar is the measured time. A diamond is the time
# predicted from the stages on the left. Does each bar end at its diamond? (The figure shows our saved runs.)

# %%
stages = live("C19", device=device, seed=seed)

# %%
_ = saved("C19", own=False)

# %% [markdown]
# `decoded` gains most, because both of its sides are long. The other four pipelines have one short side. In
# `vectorised`, `loop` and `cached` it is the preparing. In `loop small network` it is the update.
#
# In our saved runs of `decoded`, preparation is the slower side. The next cell predicts your own machine's rates. The
# last row of its table is for a GPU on which an update takes no time.

# %%
rows = ["| images a second | predicted | measured |", "| --- | --: | --: |"]
for arm in ("vectorised", "decoded"):
    run = stages[arm][0]
    for name, overlapped in (("in_turn", False), ("prefetched", True)):
        rows.append(f"| {arm}, {name.replace('_', ' ')} | {c19.predicted(run, overlapped):.0f} | {run[name]:.0f} |")
*preparation, update = run["stages"].values()
rows.append(f"| decoded, prefetched, on such a GPU | {run['batch'] / sum(preparation):.0f} | |")
Markdown("\n".join(rows))

# %% [markdown]
# In turn, the times of the stages add up. With prefetching, the slower side decides, if a core is free for it. In the
# saved runs this fits within a few per cent for the lessons' network. For the small network the predicted rates are too
# high (and in the figure, the predicted times too short). Its stages are so short that the time between them counts.
#
# In the figure, `loop` with prefetching is as fast as `vectorised`, but it needs a second core. Where preparation is
# the slower side, `decoded` gains nothing from a GPU. On your machine, the update may be the slower side. Then a faster
# network helps, until the decoding is slower.
#
# <details><summary>Can one predict the time of an update without a run?</summary>
#
# Roughly, by counting. Take a convolution with windows of 3 × 3 from 64 to 64 channels. It has 9 · 64 · 64 weights, and
# it uses all of them at each pixel. So for each pixel it makes 9 · 64 · 64 multiplications, and as many additions. An
# image of 32 × 32 has 1,024 pixels. So it needs 2 · 9 · 64 · 64 · 1,024, or 75 million operations. On an image of 16 ×
# 16 it needs a quarter of them, and it has as many weights. The gradients need about twice as many, because there are
# some for the weights and some for the inputs. So training needs three times 75 million. A processor that makes 50
# billion of them a second needs 4.5 ms for this layer and one image. Such a count tells $c$ of lesson 02, but not
# $t_0$, and real programs reach only a part of the speed that a data sheet names.
#
# </details>
#
# ## Summary
#
# - Without prefetching, the times of a pipeline's stages add up. With it, the slower side sets the pace.
# - A lower loss does not always mean a higher accuracy. Judge by images that the network has not seen.
# - Expect a distortion to pay if its images could be real, and if the run is long enough to learn by heart without it.
#   Whitening is no distortion.
# - A mean of gradients is right. A gradient of means is wrong.
#
# <details><summary>Question 1: you whiten the training images and forget the test images. What do you see?</summary>
#
# The training loss falls as usual. The test accuracy is low from the first epoch on. At the test, the network sees
# other numbers than in training. No training curve shows this.
#
# </details>
#
# <details><summary>Question 2: after a change the training loss is higher than before. Is that bad?</summary>
#
# It depends on the change. Stronger distortions, label smoothing or weight decay raise the loss, and may raise the test
# accuracy. A learning rate that is too high also raises the loss. Compare the test accuracy over several seeds.
#
# </details>
