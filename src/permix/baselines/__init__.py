"""What mixtures are compared with: kernel density estimation and mean-shift of rankings."""
