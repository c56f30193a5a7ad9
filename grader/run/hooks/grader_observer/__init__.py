"""Runs inside each worker of a graded run (see `sitecustomize.py`). The grader imports its `log_format` alone."""
