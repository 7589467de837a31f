"""One ordering for many: Kemeny's consensus."""
