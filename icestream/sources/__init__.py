"""Where records come from that are not in Kafka yet; no Spark, no Kafka client."""
