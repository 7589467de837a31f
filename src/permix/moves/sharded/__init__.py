"""Moves of chains over rows in shards: all rows placed at once, and whole groups split and merged."""
