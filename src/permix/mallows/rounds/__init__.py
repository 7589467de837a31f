"""Rounds of EM, one way for each kind of rows: words of pairs, levels, sums over all orders."""
