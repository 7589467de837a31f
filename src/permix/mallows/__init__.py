"""Mixtures of Mallows models from any preferences (Lu & Boutilier 2014)."""
