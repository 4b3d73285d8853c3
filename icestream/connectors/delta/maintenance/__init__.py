"""Keeps Delta tables in shape: small files are merged, files that the table no longer has are removed."""
