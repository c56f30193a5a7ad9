"""The pictures of the code, and what draws them. `make picture` draws them anew."""
