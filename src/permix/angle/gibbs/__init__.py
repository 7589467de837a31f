"""Sweeps over completions, components and parameters: Gibbs sampling and stochastic EM."""
