"""What a job of a sink publishes to Kafka: offsets, events, dead letters."""
