"""Measures the assignment: where its targets must lie, and what being graded costs."""
