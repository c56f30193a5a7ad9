"""Runs a submission on four workers and watches it, from inside and from outside."""
