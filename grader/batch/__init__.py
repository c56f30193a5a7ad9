"""Grades all submissions of a folder, on this machine or on several."""
