"""How weights that depend on columns of agents are shown, and what archives hold of them, in all models."""
