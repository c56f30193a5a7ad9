"""Claims that lesson 09 shows."""
