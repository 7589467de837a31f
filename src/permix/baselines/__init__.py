"""What mixtures are compared with: density estimation and mean-shift of rankings."""
