"""The claim that the lab of lesson 10 shows."""
