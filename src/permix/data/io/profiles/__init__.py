"""Text files of whole profiles: a line for each ballot, or for ballots that say the same."""
