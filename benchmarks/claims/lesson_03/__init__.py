"""Claims that lesson 03 shows."""
