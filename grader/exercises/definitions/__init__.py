"""These folders hold the lessons' function exercises: a folder for each lesson, and a module for each exercise."""
