"""Claims that lesson 05 shows."""
