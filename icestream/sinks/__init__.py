"""Where records land: one folder per target."""
