"""New data without fitting again: draws are weighted by what they say of it, and moved."""
