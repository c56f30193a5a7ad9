"""What the course is compared with."""
