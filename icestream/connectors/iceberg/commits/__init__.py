"""Commits with a checkpoint: compare-and-set, at a cost that does not grow with a table's history."""
