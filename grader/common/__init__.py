"""What every room of the grader may use. It imports no other room."""
