"""These modules take in a submission, and refuse one that cannot be a program."""
