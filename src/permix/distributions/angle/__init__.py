"""The angle-based model of Xu, Alvo & Yu (2018)."""
