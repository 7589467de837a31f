"""How permix runs: threads, Ctrl-C, progress and seeds, each in one place. Nothing here knows a model."""
