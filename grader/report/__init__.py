"""Shows a grade: in the terminal, as JSON, as a page with figures."""
