"""The claims that lesson 02 shows."""
