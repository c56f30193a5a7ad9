"""What people read about the course. `pictures/` draws the pictures in it from the code."""
