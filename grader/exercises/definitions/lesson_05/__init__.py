"""Function exercises of lesson 05."""
