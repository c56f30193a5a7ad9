"""The programs with which the course is compared."""
