"""Kafka's FileStreamSource and FileStreamSink."""
