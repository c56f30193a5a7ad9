"""This folder has the pictures of the code, and the modules that draw them. `make picture` draws them again."""
