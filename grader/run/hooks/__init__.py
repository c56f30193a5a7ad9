"""The folder that is on PYTHONPATH in a graded run."""
