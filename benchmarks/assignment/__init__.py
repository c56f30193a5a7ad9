"""Measures the assignment: where its targets must lie, and how much time grading adds to a run."""
