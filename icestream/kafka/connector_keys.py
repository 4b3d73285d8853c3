"""What a connector may say to Kafka's client beside Java's settings, and what it inherits from the worker.

librdkafka loads libraries, runs commands and reads files that some of its settings name: the owner of a
worker may use them, a connector may not. Used by `java_settings.py` and `clients.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NATIVE: Final = frozenset(
    {
        *("message.max.bytes", "message.copy.max.bytes", "receive.message.max.bytes", "debug"),
        "statistics.interval.ms",
        *("topic.metadata.refresh.interval.ms", "topic.metadata.refresh.fast.interval.ms"),
        *("topic.metadata.refresh.sparse", "topic.metadata.propagation.max.ms"),
        *("socket.timeout.ms", "socket.keepalive.enable", "socket.nagle.disable", "socket.max.fails"),
        *("socket.send.buffer.bytes", "socket.receive.buffer.bytes"),
        *("broker.address.ttl", "broker.address.family", "broker.version.fallback"),
        *("api.version.request", "api.version.request.timeout.ms", "api.version.fallback.ms"),
        *("ssl.curves.list", "ssl.sigalgs.list", "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"),
        *("enable.ssl.certificate.verification", "https.ca.pem"),
        *("sasl.mechanisms", "sasl.username", "sasl.password", "sasl.oauthbearer.method"),
        *("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.extensions"),
        *("sasl.oauthbearer.config", "enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.grant.type"),
        # consumers
        *("queued.min.messages", "queued.max.messages.kbytes", "fetch.wait.max.ms"),
        *("fetch.message.max.bytes", "fetch.queue.backoff.ms", "fetch.error.backoff.ms"),
        # producers
        *("queue.buffering.max.messages", "queue.buffering.max.kbytes", "queue.buffering.max.ms"),
        *("message.send.max.retries", "message.timeout.ms", "batch.num.messages", "partitioner"),
        *("compression.codec", "compression.level", "sticky.partitioning.linger.ms"),
    }
)
"""librdkafka's own settings that a connector may override."""

FILES: Final = frozenset(
    {
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.template.file",
    }
)
"""Java's settings whose files would be sent to an address that the connector names, too."""

_ADDRESSES: Final = ("bootstrap.servers", "sasl.oauthbearer.token.endpoint.url")


def goes_elsewhere(worker: Mapping[str, str], override: Mapping[str, str]) -> bool:
    """Whether a connector changes who gets to see a login. Then it has to bring the login, too."""
    return any(
        key in override and _listed(override[key]) != _listed(worker.get(key, "")) for key in _ADDRESSES
    )


def _listed(addresses: str) -> set[str]:
    return {one.strip().lower() for one in addresses.split(",") if one.strip()}
