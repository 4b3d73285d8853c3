"""The only package that imports a Kafka client."""
