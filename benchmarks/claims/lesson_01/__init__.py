"""Claims that lesson 01 shows."""
