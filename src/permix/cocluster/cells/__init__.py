"""Cells of a matrix, the blocks they add up to, and lines of cells as data of a mixture."""
