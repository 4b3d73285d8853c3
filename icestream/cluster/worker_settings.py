"""The keys of a worker's config file: Kafka Connect's own, Kafka's client settings, Spark's and ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.connector_settings import converter_settings


def _strings(doc: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(name, Type.STRING, None, doc, importance="LOW") for name in names)


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "plugin.path": "plugins are Python packages",
    "plugin.discovery": "plugins are Python packages",
    "offset.flush.interval.ms": "offsets are committed with the rows",
    "offset.flush.timeout.ms": "offsets are committed with the rows",
    "connector.client.config.override.policy": "all client overrides are allowed",
    "connector.client.config.override.allowlist": "all client overrides are allowed",
    "topic.tracking.enable": "topics are not tracked by this version",
    "topic.tracking.allow.reset": "topics are not tracked by this version",
    "topic.creation.enable": "there are no source connectors in this version",
    "metric.reporters": "there is no JMX",
    "auto.include.jmx.reporter": "there is no JMX",
}

DISTRIBUTED: Final = (
    "group.id",
    "session.timeout.ms",
    "rebalance.timeout.ms",
    "heartbeat.interval.ms",
    "exactly.once.source.support",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
    "offset.storage.topic",
    "offset.storage.partitions",
    "offset.storage.replication.factor",
    "config.storage.topic",
    "config.storage.replication.factor",
    "status.storage.topic",
    "status.storage.partitions",
    "status.storage.replication.factor",
    "connect.protocol",
    "scheduled.rebalance.max.delay.ms",
    "inter.worker.key.generation.algorithm",
    "inter.worker.key.size",
    "inter.worker.key.ttl.ms",
    "inter.worker.signature.algorithm",
    "inter.worker.verification.algorithms",
)

NOT_YET: Final = (
    "config.providers",
    "rest.extension.classes",
    "response.http.headers.config",
    "admin.listeners",
)

CLIENT_KEYS_OF_JAVA: Final = ("sasl.jaas.", "sasl.login.", "sasl.client.", "ssl.truststore.", "ssl.keystore.")
"""Refused: librdkafka has them in another form (sasl.username, sasl.password, ssl.ca.location, …)."""

_CLIENT: Final = (
    "security.protocol",
    "security.providers",
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "metadata.max.age.ms",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
    "receive.buffer.bytes",
    "send.buffer.bytes",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
)

CLIENT_KEYS_UNUSED: Final = tuple(key for key in _CLIENT if key != "security.protocol")

_REST: Final = (
    Setting("listeners", Type.LIST, [], "Where REST listens, such as http://127.0.0.1:8083; one address."),
    Setting("rest.host.name", Type.STRING, "", "Where REST listens when 'listeners' is absent."),
    Setting(
        "rest.port",
        Type.INT,
        8083,
        "The port of REST when 'listeners' is absent; 0 takes a free one.",
        at_least=0,
        check=lambda port: "must be at most 65535" if port > 65535 else None,
    ),
    Setting("rest.advertised.host.name", Type.STRING, "", "The host that others use to reach this worker."),
    Setting("rest.advertised.port", Type.INT, None, "The port that others use to reach this worker."),
    Setting("rest.advertised.listener", Type.STRING, "http", "http; https is not supported by this version."),
    Setting("access.control.allow.origin", Type.STRING, "", "Web origin that may call REST; * for all."),
    Setting(
        "access.control.allow.methods",
        Type.STRING,
        "",
        "Verbs that this origin may use; GET, POST, HEAD by default.",
    ),
)

_ICESTREAM: Final = (
    Setting("icestream.state.file", Type.STRING, "", "Where connectors and their states are kept."),
    Setting(
        "icestream.log.level",
        Type.STRING,
        "INFO",
        "DEBUG, INFO, WARNING or ERROR.",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    ),
    Setting(
        "icestream.unknown.keys",
        Type.STRING,
        "typos",
        "Keys that nobody knows: error, typos or accept.",
        choices=("error", "typos", "accept"),
    ),
)

WORKER: Final = (
    ConfigDef(
        (
            Setting(
                "bootstrap.servers",
                Type.LIST,
                ["localhost:9092"],
                "The Kafka brokers to begin with.",
                importance="HIGH",
            ),
            Setting(
                "key.converter", Type.CLASS, REQUIRED, "For connectors that name none.", importance="HIGH"
            ),
            Setting(
                "value.converter", Type.CLASS, REQUIRED, "For connectors that name none.", importance="HIGH"
            ),
            Setting("header.converter", Type.CLASS, None, "For connectors that name none.", importance="LOW"),
            Setting(
                "offset.storage.file.filename",
                Type.STRING,
                "",
                "Kafka's file; ours lies beside it.",
                importance="HIGH",
            ),
            Setting(
                "task.shutdown.graceful.timeout.ms", Type.LONG, 5000, "How long a stop may take.", at_least=0
            ),
            *_REST,
            *_ICESTREAM,
            *_strings("Has no effect here.", *WITHOUT_EFFECT),
            *_strings("Of distributed workers.", *DISTRIBUTED),
            *_strings("Not supported by this version.", *NOT_YET),
            *_strings("Kafka's client setting.", *_CLIENT),
        ),
        prefixes=(
            "producer.",
            "consumer.",
            "admin.",
            "spark.",
            "sasl.",
            "ssl.",
            "listeners.https.",
            "metrics.",
            "config.providers.",
        ),
    )
    + converter_settings()
)
