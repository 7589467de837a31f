"""Mixtures of angle-based models of rankings (Xu, Alvo & Yu 2018)."""
