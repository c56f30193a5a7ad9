"""The claims that lesson 06 shows."""
