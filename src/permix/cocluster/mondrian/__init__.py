"""Co-clusterings by nested cuts: Mondrian partitions."""
