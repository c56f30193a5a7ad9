"""Function exercises of lesson 06."""
