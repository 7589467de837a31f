"""EM and answers under other distances than Kendall's, over all full rankings that agree."""
