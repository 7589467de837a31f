"""Bayesian Mallows models: six distances, errors of comparisons, and as many groups as wanted or needed."""
