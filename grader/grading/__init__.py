"""Gathers the evidence of one run, and judges it by the rubric."""
