"""Kafka Connect's REST API on Starlette."""
