"""Launches of real workers from a notebook: one script, a learner's programs, torchrun, several hosts."""
