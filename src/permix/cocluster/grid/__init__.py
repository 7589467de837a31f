"""Co-clusterings that are a grid: a partition of the rows times one of the columns."""
