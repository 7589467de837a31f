"""Co-clustering of matrices and its ensembles (Wang, Laskey, Domeniconi & Jordan 2011)."""
