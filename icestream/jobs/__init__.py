"""Exactly once: who plans, who commits, in which order."""
