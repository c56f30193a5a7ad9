"""Function exercises of lesson 03."""
