"""What measures: workers of several kinds, counters of bytes, stopwatches."""
