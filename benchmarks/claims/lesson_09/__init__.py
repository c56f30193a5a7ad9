"""The claims that lesson 09 shows."""
