"""Function exercises of lesson 07."""
