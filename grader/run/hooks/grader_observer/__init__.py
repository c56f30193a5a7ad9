"""The observer runs inside each worker of a graded run. The grader itself imports nothing of it but `log_format`."""
