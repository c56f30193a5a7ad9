"""Instruments for measuring: several kinds of workers, counters of bytes and memory, and stopwatches."""
