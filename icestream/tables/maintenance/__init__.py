"""What the maintenance of every kind of table has in common."""
