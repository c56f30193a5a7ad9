"""Function exercises of lesson 01."""
