"""The grader: launches a submission on four workers, watches what it does, and judges what it left."""
