"""What every estimator shares: input, archives, and how they are found."""
