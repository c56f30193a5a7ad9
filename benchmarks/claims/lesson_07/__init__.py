"""Claims that lesson 07 shows."""
