"""Whether all records of a connector are where they belong."""
