"""Grades a class's submissions into nbgrader's gradebook."""
