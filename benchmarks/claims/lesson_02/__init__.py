"""The claims that lesson 02 and its lab show."""
