"""``permix serve``: a page on this machine to drop a file on; files never leave it."""
