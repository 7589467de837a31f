"""Mixtures of Mallows models whose weights depend on what is known of agents."""
