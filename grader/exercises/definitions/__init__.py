"""The lessons' function exercises, one module each, in a folder for each lesson."""
