"""Claims that lesson 02 shows."""
