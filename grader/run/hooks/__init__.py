"""This folder is on PYTHONPATH in a graded run: see `sitecustomize.py`."""
