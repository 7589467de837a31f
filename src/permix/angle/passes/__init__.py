"""Passes over rankings: sums over all agents, whoever holds their rows."""
