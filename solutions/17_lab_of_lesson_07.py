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
# # 17 Lab of lesson 07: how a rate was chosen
#
# **After this notebook you will be able to** say how a search for a rate can mislead, and what it takes to compare two
# optimizers fairly.
#
# **Time:** {{minutes_17}} minutes, and no waiting: all runs of this notebook are saved. **Builds on:** 07.
#
# This is a lab. It looks closer at the last rows of lesson 07, and no later lesson needs it.

# %% [markdown]
# ## How were the rates chosen?
#
# In lesson 07, LAMB and SGD were compared at rates that had been searched for. First we ran each of four rates with one
# seed, and took the rate with the highest accuracy on test images. Then we ran the chosen rates with all seeds.
#
# **Guess first.** A rate was chosen because its one run was the best of four. Will the mean of its five runs be as
# high?
#
# **What to look at:** a cross is a run by which we chose. A point with a bar is the mean of all seeds.

# %%
from lessons import saved
from lessons.cells.plots import rebuilt_table

runs = saved("C32", verdict=False, figure=False).runs
rebuilt_table.show_rates(runs)
rebuilt_table.arms(runs, tuned=True)

# %% [markdown]
# With clipped SGD and with LAMB, the mean of the five runs is as high as the run by which we chose. With plain SGD it
# is about a point lower, because one of its five runs ended far below the others. One run could not tell that.
#
# The choice was made by one run each, so it is partly luck: a lucky run is chosen more often. It was also made on test
# images, so the accuracy that is reported may be a little too high. (A fair search chooses on other images.)
#
# As a referee, you should also ask whether four rates are enough. Plain SGD is nearly as good at its lowest rate as at
# the chosen one (one run each). So a rate between them, or below, may be a little better.
#
# <details><summary>Would SGD win if more of its settings were tuned?</summary>
#
# Perhaps. Nado et al. 2021 (arXiv:2102.06356) tuned more settings, for all optimizers. They used the benchmarks that
# had made LARS and LAMB known. There, SGD with Nesterov momentum and Adam got as far. We do not know whether more
# tuning would close the gap here.
#
# </details>
#
# ## Are eight workers with LAMB as good as one?
#
# One worker with batch normalisation makes eight times as many updates as eight workers with LAMB. **Guess:** how many
# points is it ahead?

# %%
rebuilt_table.what_changes(runs, "1-bn", "8-lamb-0.03")

# %% [markdown]
# One worker reaches {{c32_bn}} %, and eight workers reach {{c32_lamb_tuned}} %, with an eighth of the updates. The
# difference is {{c32_end}} points ({{c32_end_interval}}), and no difference is seen. So a good recipe can make up for
# the missing updates. But this does not show that eight are as good as one. LAMB had a searched rate and a decay, and
# the one worker had neither.
#
# ## Summary
#
# - A rate that was chosen by one run each is partly luck, and one run does not show that some seeds fail. Choose by
#   several runs, on other images than those that you report.
# - Both optimizers need equally many tries, and the number of tries belongs in the table.
# - A good recipe can make up for fewer updates. To show that, the other side needs a good recipe, too.
