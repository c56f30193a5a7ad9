"""The claims that lesson 04 and its lab show."""
