"""Workers that share connectors."""
