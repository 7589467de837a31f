"""Distributions over rankings given what an agent said."""
