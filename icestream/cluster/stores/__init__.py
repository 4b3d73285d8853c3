"""Where configs, states and offsets of connectors are kept: in Kafka, or in memory."""
