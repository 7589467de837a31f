"""Distributions over rankings: by themselves, and given what an agent said."""
