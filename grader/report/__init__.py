"""These modules show a grade in the terminal, as JSON, and as a page with figures."""
