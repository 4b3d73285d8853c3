"""The jobs of sources: from a system to records in topics."""
