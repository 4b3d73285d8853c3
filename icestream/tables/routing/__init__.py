"""Jobs whose records choose their tables."""
