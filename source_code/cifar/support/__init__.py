"""What the course's own programs need beside the lessons' code."""
