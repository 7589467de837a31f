"""Layouts of tables: which one a table has, and a reader for each."""
