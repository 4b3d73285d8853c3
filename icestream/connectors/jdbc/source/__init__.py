"""The JDBC source: rows of tables or of a query, by a growing number, a timestamp, both, or all of them."""
