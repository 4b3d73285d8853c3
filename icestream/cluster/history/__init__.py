"""What happened to connectors, and how well they are, for the console."""
