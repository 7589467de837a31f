"""Grid co-clustering of matrices whose rows are in shards."""
