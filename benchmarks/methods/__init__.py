"""What is measured in several experiments: ways to exchange, to normalise, to augment."""
