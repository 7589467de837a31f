"""Compiled free functions on arrays. No Python objects, no validation: callers check."""
