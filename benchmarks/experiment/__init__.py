"""What an experiment is, how it is run, and how its results are kept, compared and drawn."""
