"""Mixtures of vectors with an unknown number of groups (Liang, Jordan & Taskar 2007)."""
