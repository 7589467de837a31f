"""Rows with missing cells: independent columns leave them out, other families draw them."""
