"""What sinks that write tables have in common: routes, columns about Kafka, origins of rows."""
