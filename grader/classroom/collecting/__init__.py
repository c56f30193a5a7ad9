"""Brings a class's submissions into `submitted/`, and reads them there."""
