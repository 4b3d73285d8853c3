"""Commits of the S3 sink: staged objects, the ledger, and how objects become visible and are proved."""
