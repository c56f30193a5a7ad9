"""A class with nbgrader, which keeps the points that the grader gives: from the release to the certificates."""
