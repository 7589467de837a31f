"""Tests of the comparison of models."""
