"""The claims that lesson 05 shows."""
