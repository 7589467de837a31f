"""Other packages that do what permix does, each called as its documentation shows."""
