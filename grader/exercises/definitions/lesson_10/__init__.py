"""These modules are the function exercises of lesson 10."""
