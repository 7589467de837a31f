"""Density estimation for rankings: a Mallows model around every agent."""
