"""Claims that lesson 04 shows."""
