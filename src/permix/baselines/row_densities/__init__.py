"""Densities of rows of preferences under Mallows models around other rows."""
