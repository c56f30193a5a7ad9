"""The static pages: one for each executed lesson, a gallery, and an index."""
