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
# # 12 Lab of lesson 02: loss and accuracy, distorted images, mean images
#
# **After this notebook you will be able to** say what the printed loss tells you and what it hides, when a distortion
# of the images raises the accuracy, and why one cannot train on the mean image of a batch.
#
# **Time:** {{minutes_12}} minutes, besides the waiting for its runs. **Builds on:** 02.
#
# This is a lab: experiments that belong to lesson 02, and that no later lesson needs. Take those that you want to see.

# %% tags=["parameters"]
workers, epochs, images, seed, device = 4, 1, 4096, 0, "auto"

# %%
import torch

from benchmarks.claims.lesson_02 import c18_mean_activation as c18
from benchmarks.methods import augmentations
from cifar import data
from lessons import live, panels, saved, show

train, test = data.load(limit=images)

# %% [markdown]
# ## Should a lower loss not mean a higher accuracy?
#
# You see the printed loss fall, and you expect the accuracy to rise. Is that safe? Here are two made-up networks, two
# classes and five images. **Guess:** which network has the lower loss, and which is right more often?

# %%
modest = torch.tensor([0.60, 0.55, 0.60, 0.40, 0.45])  # probability of the right class; two classes
bold = torch.tensor([0.99, 0.99, 0.99, 0.99, 0.0001])
for name, right_class in (("modest", modest), ("bold", bold)):
    accuracy = (right_class > 0.5).float().mean()
    print(f"{name}: loss {-right_class.log().mean():.2f} nats, accuracy {accuracy:.0%}")

# %% [markdown]
# `bold` is right more often, but its loss is higher. It is very sure and wrong about one image, and this image makes
# the mean large. Three things stand between the printed loss and the accuracy.
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
# - `smoothed` has **label smoothing**: the target is 82 % for the right class, and not 100 %. Each other class gets 2
#   %.
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
# If a network learns images by heart, do not show it the same image twice. TensorFlow's CIFAR-10 tutorial, from which
# the question behind this course grew, changes them in five ways. Here is each of them on one image. (One is altered:
# the tutorial cuts out 24 × 24 pixels. We widen the image by 4 mirrored pixels on each side and cut out 32 × 32, so
# that all networks have images of one size.)

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
# Four of them draw random numbers, so that each epoch shows another version. **Whitening** does not: it gives each
# image mean 0 and deviation 1, always the same way. (The tutorial's word; *standardising* an image is the exact one.)
# It is no distortion but a preparation, and the test images have to go through it as well; forget that, and accuracy
# falls for a reason that no training curve shows.
#
# One thing follows without any run. Brightness adds one number to all values of an image, and whitening takes the mean
# away. So after whitening it is as if nothing had been added:

# %%
torch.manual_seed(seed)
brighter = augmentations.random_brightness(train.images[:100])
whiten = augmentations.Whiten()
gap = (whiten(data.normalise(brighter)) - whiten(data.normalise(train.images[:100]))).abs().max()
print(f"largest value added: {(brighter - train.images[:100]).abs().max():.0f} of 255; left after whitening: {gap:.1e}")

# %% [markdown]
# The claim is that distortions raise the training loss, since the task is harder, and raise the test accuracy all the
# same. The experiment trains with each one alone, with none, and with all, and compares seed by seed.
#
# **What to look at:** an interval that touches the dashed line is a change that we cannot tell from luck. Of a single
# seed there is no interval, so a live run's verdict can only be "no difference seen".

# %%
_ = live("C09", device=device, seed=seed)

# %%
_ = saved("C09")

# %% [markdown]
# Ask of each distortion: *does it turn an image into another one that could have been in the test set?* A mirrored
# horse can. So can one that stands a little further to the left. An image with a fifth of its contrast hardly can.
# Where a row of the figure shows a higher training loss
# and no higher accuracy, the task was made harder without being made more like the real one.
#
# Distortions also need time: they help against learning by heart, so they pay when there are enough epochs to learn by
# heart in. (They cost time, too. We come to that.)

# %% [markdown]
# ## Could one back-propagate a mean image?
#
# Lesson 02 shows that training needs memory for the activations of each image. So why not average them? Keep one mean
# activation for each layer, send one error back, and pay for one image whatever the batch. The answer shows what a
# batch *is*.
#
# Let $a$ be the input of a layer, and $\delta$ the error that comes back to it, both for one image. The gradient of a
# weight is a mean of products $\delta a^\top$, and the proposal is a product of means:
#
# $$\overline{\delta a^\top} = \bar\delta\,\bar a^\top + \operatorname{Cov}(\delta, a).$$
#
# The covariance is what ties *this* error to *this* input. Without it, nothing says which images need which class.
#
# Three cases, then. Take a network without activation functions, with a squared error. All errors are linear in the
# image, so the mean error of each layer is exactly the error of the mean image. A **bias**'s gradient is just the mean
# error: the cosine between the true gradient and the proposed one is 1. A **weight**'s gradient is not linear in the
# image, and loses the covariance even here. With cross-entropy the softmax bends the errors, and with ReLU the
# activations are bent. Then nothing promises the biases a cosine of 1. Look in the middle panel which of the two does
# more harm.

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
# **What to look at:** the left panel for the weights, the middle one for the biases, at one image (where mean and image
# are the same) and at the largest batch. On the right, whether such a gradient can still train.

# %%
_ = live("C18", device=device, seed=seed)

# %%
_ = saved("C18")

# %% [markdown]
# You may read that for linear networks the mean would be exact. For the activations that is so, and with a squared
# error also for the errors and the biases. It is not so for the weights, which are nearly all of the parameters, and
# the experiment shows it. A batch is not a mean image. What may be averaged is the *gradients*, each computed from its
# own images, and that is all that data parallelism does.
#
# ## Summary
#
# - A lower loss is not always a higher accuracy. Judge by images that the network has not seen.
# - Expect a distortion to pay if it makes images that could be real, and in runs long enough to learn by heart without
#   it. Whitening is no distortion.
# - A mean of gradients is right. A gradient of means is not.
#
# <details><summary>Question 1: you whiten the training images and forget the test images. What do you see?</summary>
#
# The training loss falls as usual, and the test accuracy is low from the first epoch on. The network sees other numbers
# at the test than it has learnt from. No curve of the training shows this.
#
# </details>
#
# <details><summary>Question 2: after a change the training loss is higher than before. Is that bad?</summary>
#
# It depends on the change. Stronger distortions, label smoothing or weight decay raise it and may raise the test
# accuracy. A learning rate that is too high raises it as well. Compare the test accuracy over several seeds.
#
# </details>
