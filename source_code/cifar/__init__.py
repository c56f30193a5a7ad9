"""What the lesson scripts share: data, networks, the training loop, LAMB, and the workers' set-up."""
