"""The claims that lesson 05 and its lab show."""
