"""Claims that lesson 06 shows."""
