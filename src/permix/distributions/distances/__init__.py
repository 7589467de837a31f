"""Six distances between full rankings: their sums over all rankings, and exact draws."""
