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
