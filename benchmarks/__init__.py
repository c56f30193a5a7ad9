"""Commands that measure. What they write lies in `benchmarks/results/`, with machine, versions, commit and settings."""
