"""The instructor's week: release, autograde, feedback, export, certify. nbgrader keeps the books, the grader judges."""
