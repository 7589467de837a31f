"""How many groups: held-out probability and information criteria."""
