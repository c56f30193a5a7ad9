"""One module for each comparison of speed."""
