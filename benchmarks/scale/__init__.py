"""Data in shards: how time, memory and what travels grow with the data."""
