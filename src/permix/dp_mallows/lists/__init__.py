"""Top lists as the samplers see them, compiled."""
