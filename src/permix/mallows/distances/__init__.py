"""EM and answers under distances other than Kendall's, over all full rankings that agree with what agents said."""
