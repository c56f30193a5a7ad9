"""Function exercises of lesson 04."""
