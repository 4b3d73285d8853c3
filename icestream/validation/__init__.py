"""JSON Schema checks of record values, on columns where they can be."""
