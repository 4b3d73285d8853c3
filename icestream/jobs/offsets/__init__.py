"""Offsets of connectors, as people look at them and change them."""
