"""Chains of Bayesian Mallows models: their state, their moves, and compiled code."""
