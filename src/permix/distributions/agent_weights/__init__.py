"""Weights of the components of a mixture that depend on what is known of agents, as a multinomial logit."""
