"""Dirichlet-process mixtures of generalized Mallows models (Meilă & Chen 2010)."""
