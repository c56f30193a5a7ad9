"""Releases assignments, feedback, grades and certificates."""
