"""These scripts run inside the sandbox, beside a learner's files."""
