"""Takes in a class's submissions."""
