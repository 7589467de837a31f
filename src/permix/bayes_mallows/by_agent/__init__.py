"""Bayesian Mallows models in which the shares of groups depend on what is known of agents."""
