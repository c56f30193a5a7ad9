"""Figures that one lesson needs, each with the numbers of saved results or of a learner's own functions."""
