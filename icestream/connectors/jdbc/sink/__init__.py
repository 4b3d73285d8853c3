"""The JDBC sink: rows are staged in tables of the same database, and merged with the checkpoint at once."""
