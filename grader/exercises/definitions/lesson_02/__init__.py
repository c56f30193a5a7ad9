"""Function exercises of lesson 02."""
