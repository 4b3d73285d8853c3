"""The JDBC connectors, without Java: rows into tables of a database, and rows of a database into Kafka."""
