"""This package defines experiments, runs them, and keeps, compares and draws their results."""
