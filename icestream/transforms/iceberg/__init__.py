"""The transforms that come with Iceberg's Kafka Connect sink."""
