"""Kafka Connect, with Spark inside."""

__version__ = "0.1.0"
