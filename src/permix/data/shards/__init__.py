"""Data in shards, of which no process need hold all."""
