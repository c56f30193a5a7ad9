"""The live view of a run: a lane for each worker, and the accuracy as it grows."""
