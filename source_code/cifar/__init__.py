"""The lesson scripts share this package: data, networks, the training loop, LAMB, and the set-up of the workers."""
