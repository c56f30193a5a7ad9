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
# # 98 Glossary
#
# These are the terms of the course, in the order of the alphabet. A lesson explains a term where it is used for the
# first time, and prints it in bold there.
#
# {{glossary}}
#
# ## Symbols
#
# | symbol | meaning | lessons |
# | --- | --- | --- |
# | $K$ | the number of workers | all |
# | $B$ | the images in a batch of one worker that trains alone | 01, 02, 05 |
# | $b$, $n$ | the images in the batch of each of several workers, so $Kb$ or $Kn$ is the global batch | 01, 03, 05, 14 |
# | $N$ | the number of training images | 01, 05, 15 |
# | $N$ | the bytes of a gradient | 03, 13, 20 |
# | $n$ | the bytes of a message | 03, 09, 14 |
# | $w$ | the weights | 01, 05, 06 |
# | $g$ | a gradient of the loss | all |
# | $\eta$ | the learning rate | 01, 05, 06 |
# | $m$, $v$ | the momentum and the velocity | 15, 16 |
# | $\lambda$ | the weight decay | 06, 13 |
# | $t_0$, $c$ | the fixed time of an update, and the time for each image of its batch | 02, 14 |
# | $\alpha$, $\beta$ | the latency of a message, and the time for each byte | 03, 14, 20 |
# | $\gamma$ | the time in which the workers agree on an exchange | 20 |
