"""Takes in what a learner hands in, and refuses what cannot be a program."""
