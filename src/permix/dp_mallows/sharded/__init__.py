"""The parallel sampler on agents in shards, none of which the client holds."""
