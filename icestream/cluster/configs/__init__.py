"""Configs of connectors: read, checked, edited, with secrets hidden."""
