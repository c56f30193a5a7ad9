"""Defines experiments, runs them, and keeps, compares and draws their results."""
