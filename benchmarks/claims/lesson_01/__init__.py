"""The claims that lesson 01 shows."""
