"""Is Kafka there, and does it let us in? Asked when a config is checked."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from icestream.kafka.clients import kafka_errors, quiet


def reach(settings: Mapping[str, str], seconds: float) -> None:
    """Raise what keeps a client from Kafka: a refused login or certificate is a ConfigError that says so."""
    with kafka_errors("connecting to Kafka"):
        admin = AdminClient(quiet(settings))
    with kafka_errors("connecting to Kafka", admin.poll):
        admin.describe_cluster(request_timeout=seconds).result(seconds + 1)
