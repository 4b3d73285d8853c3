"""The files that a Kafka broker of one node needs in KRaft mode. Pure text; `kafka.py` writes them."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.embedded.ports import HOST
from icestream.java_properties import properties_text

SCRAM: Final = "SCRAM-SHA-512"
_LOGINS: Final = "org.apache.kafka.common.security"
LARGEST_MESSAGE_BYTES: Final = 12 * 1024 * 1024


@dataclass(frozen=True)
class SecureListener:
    """A second listener, with TLS and SASL; the broker talks to itself on the plain one."""

    port: int
    keystore: Path
    truststore: Path
    store_password: str
    user: str
    password: str


def new_cluster_id() -> str:
    """A random id as Kafka writes it: 16 bytes in base64; a leading dash would look like an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def server_properties(
    logs: Path,
    port: int,
    controller_port: int,
    secure: SecureListener | None = None,
    advertised: int | None = None,
) -> str:
    """Small internal topics for a quick start; no record expires, because `verify` counts them all.

    `advertised` is the port that clients are told, if somebody stands between.
    """
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{advertised or port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        # After kill -9 the controller lets the broker back in only when the old session is over.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        "log.dirs": logs,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "message.max.bytes": LARGEST_MESSAGE_BYTES,
        "replica.fetch.max.bytes": LARGEST_MESSAGE_BYTES,
        "log.segment.bytes": 256 * 1024 * 1024,
        "log.retention.ms": -1,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }
    return properties_text({**settings, **(_secure_settings(settings, secure) if secure else {})})


def _secure_settings(plain: Mapping[str, object], secure: SecureListener) -> dict[str, object]:
    address = f"SASL_SSL://{HOST}:{secure.port}"
    listener = "listener.name.sasl_ssl"
    return {
        "listeners": f"{plain['listeners']},{address}",
        "advertised.listeners": f"{plain['advertised.listeners']},{address}",
        "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": f"{SCRAM},PLAIN,OAUTHBEARER",
        f"{listener}.{SCRAM.lower()}.sasl.jaas.config": f"{_LOGINS}.scram.ScramLoginModule required;",
        f"{listener}.plain.sasl.jaas.config": (
            f'{_LOGINS}.plain.PlainLoginModule required user_{secure.user}="{secure.password}";'
        ),
        # Tokens without a signature are good enough for tests.
        f"{listener}.oauthbearer.sasl.jaas.config": (
            f'{_LOGINS}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{listener}.ssl.keystore.type": "PKCS12",
        f"{listener}.ssl.keystore.location": secure.keystore,
        f"{listener}.ssl.keystore.password": secure.store_password,
        # A client may show a certificate of its own, which must be one that is trusted.
        f"{listener}.ssl.client.auth": "requested",
        f"{listener}.ssl.truststore.type": "PKCS12",
        f"{listener}.ssl.truststore.location": secure.truststore,
        f"{listener}.ssl.truststore.password": secure.store_password,
    }


def logging_properties(file: Path) -> str:
    """Warnings and errors only, in one file that does not grow without end."""
    settings = {
        "name": "broker",
        "appender.file.type": "RollingFile",
        "appender.file.name": "file",
        "appender.file.fileName": file,
        "appender.file.filePattern": f"{file}.%i",
        "appender.file.layout.type": "PatternLayout",
        "appender.file.layout.pattern": "%d %p %m (%c)%n",
        "appender.file.policies.type": "Policies",
        "appender.file.policies.size.type": "SizeBasedTriggeringPolicy",
        "appender.file.policies.size.size": "10MB",
        "appender.file.strategy.type": "DefaultRolloverStrategy",
        "appender.file.strategy.max": 2,
        "rootLogger.level": "warn",
        "rootLogger.appenderRef.file.ref": "file",
    }
    return properties_text(settings)
