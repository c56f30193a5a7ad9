"""Runs a command that nobody trusts, and shows what it wrote and how many bytes it sent."""
