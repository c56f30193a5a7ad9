"""The claims that lesson 03 shows."""
