"""Scripts that run inside the sandbox, beside a learner's files."""
