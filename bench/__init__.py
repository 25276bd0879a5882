"""The benchmarks: what Hedgerow claims, measured, one file an experiment."""
