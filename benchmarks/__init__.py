"""Benchmarks: each against a peer or a naive version in the same run, reported as ratios."""
