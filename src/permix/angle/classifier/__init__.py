"""Rankings with known classes, told apart by an angle-based model of each."""
