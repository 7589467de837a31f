"""The generalized Mallows model: its likelihood, posterior and continuations of lists."""
