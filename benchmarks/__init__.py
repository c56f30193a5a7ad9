"""Commands that measure. They write to `benchmarks/results/`, with the machine, versions, commit and settings."""
