"""Mixtures of vectors whose rows are in shards."""
