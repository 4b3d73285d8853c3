"""Keeps tables in shape: compaction, expiry, removal of orphans."""
