"""Compares what students of a class have written, and shows the most similar pairs side by side. It accuses nobody."""
