"""Blurring mean-shift of top lists."""
