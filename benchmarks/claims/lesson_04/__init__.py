"""The claims that lesson 04 shows."""
