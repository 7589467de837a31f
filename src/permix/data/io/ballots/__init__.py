"""Readers of ballots: one file each format, found by what is in a file, a folder or a zip."""
