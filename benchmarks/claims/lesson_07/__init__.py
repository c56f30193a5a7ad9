"""The claims that lesson 07 shows."""
