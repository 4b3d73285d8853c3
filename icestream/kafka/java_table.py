"""The table from the settings of Kafka's Java clients to librdkafka's: a rule for every key that Java has.

`java_settings.py` applies it. A key that both have is here with Java's meaning and units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Type
from icestream.kafka.connection import JAVA_KEYS


@dataclass(frozen=True)
class Number:
    """Passed on as `to`, in units of `unit`, within librdkafka's limits. `java_low` is Java's own limit."""

    to: str
    low: int
    high: int
    java_low: int | None = 0
    type: Type = Type.INT
    unit: int = 1


@dataclass(frozen=True)
class Text:
    """Passed on as `to`; `choices` are compared without case, as Java does, and passed in lower case."""

    to: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Switch:
    """A truth value, passed on as `to`."""

    to: str


@dataclass(frozen=True)
class Partitioner:
    """A truth value: whether records with a key go to any partition."""


@dataclass(frozen=True)
class CipherSuites:
    """OpenSSL takes Java's names; those of TLS 1.3 are always on there and not part of its list."""


@dataclass(frozen=True)
class TlsVersions:
    """librdkafka offers TLS 1.2 and 1.3; the broker chooses."""


@dataclass(frozen=True)
class Ours:
    """Decided here. Values in `agrees` ask for what happens anyway, and are no reason for a warning."""

    reason: str
    agrees: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoEffect:
    """Accepted with a warning, unless the value is one of `agrees`: those have no effect in Java either."""

    reason: str
    agrees: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Refused:
    """An error, unless the value is one of `agrees`. The reason says what to do instead."""

    reason: str
    agrees: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class OfConnection:
    """Understood by `connection.py`."""


Rule = (
    Number
    | Text
    | Switch
    | Partitioner
    | CipherSuites
    | TlsVersions
    | Ours
    | NoEffect
    | Refused
    | OfConnection
)

_MAX_INT: Final = 2**31 - 1
_NO_JVM = NoEffect("TLS is done by OpenSSL here, not by Java")
_NO_GROUP = NoEffect("partitions are assigned by the job, not by a consumer group")
_NO_METRICS = NoEffect("metrics do not come from Kafka's client here")
_NO_SHARE = NoEffect("share groups are not used")
_LOGIN_TIMES = NoEffect("librdkafka times its logins itself")
_BROKERS_TOKENS = NoEffect("the broker validates tokens, not the client")
_BYTES_ONLY = Ours(
    "keys and values are bytes for Kafka's client; converters do the rest",
    (
        "org.apache.kafka.common.serialization.ByteArraySerializer",
        "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    ),
)
_ALWAYS_IDEMPOTENT = "records are always written by an idempotent or transactional producer"

OF_EVERY_CLIENT: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(JAVA_KEYS, OfConnection()),
    "client.id": Text("client.id"),
    "client.rack": Text("client.rack"),
    "client.dns.lookup": Text(
        "client.dns.lookup", ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    ),
    "connections.max.idle.ms": Number("connections.max.idle.ms", 0, _MAX_INT, None, Type.LONG),
    "enable.metrics.push": Switch("enable.metrics.push"),
    # In librdkafka this name is the age at which cached metadata are dropped, three times this by default.
    "metadata.max.age.ms": Number("topic.metadata.refresh.interval.ms", 1, 3_600_000, 0, Type.LONG),
    "metadata.recovery.strategy": Text("metadata.recovery.strategy", ("rebootstrap", "none")),
    "metadata.recovery.rebootstrap.trigger.ms": Number(
        "metadata.recovery.rebootstrap.trigger.ms", 0, _MAX_INT, 0, Type.LONG
    ),
    "receive.buffer.bytes": Number("socket.receive.buffer.bytes", 0, 100_000_000, -1),
    "send.buffer.bytes": Number("socket.send.buffer.bytes", 0, 100_000_000, -1),
    "reconnect.backoff.ms": Number("reconnect.backoff.ms", 0, 3_600_000, 0, Type.LONG),
    "reconnect.backoff.max.ms": Number("reconnect.backoff.max.ms", 0, 3_600_000, 0, Type.LONG),
    # In librdkafka this name is how long the broker may wait for its replicas, and the producer's only.
    "request.timeout.ms": Number("socket.timeout.ms", 10, 300_000),
    "retries": Number("retries", 1, _MAX_INT),
    "retry.backoff.ms": Number("retry.backoff.ms", 1, 300_000, 0, Type.LONG),
    "retry.backoff.max.ms": Number("retry.backoff.max.ms", 1, 300_000, 0, Type.LONG),
    "socket.connection.setup.timeout.ms": Number(
        "socket.connection.setup.timeout.ms", 1_000, _MAX_INT, None, Type.LONG
    ),
    "socket.connection.setup.timeout.max.ms": NoEffect(
        "the time of one connection attempt does not grow here"
    ),
    "default.api.timeout.ms": NoEffect("calls to Kafka have fixed time limits here"),
    "bootstrap.controllers": Refused("name brokers in bootstrap.servers instead"),
    "security.providers": NoEffect("security providers are Java classes"),
    # TLS, beside the stores
    "ssl.cipher.suites": CipherSuites(),
    "ssl.enabled.protocols": TlsVersions(),
    "ssl.protocol": TlsVersions(),
    "ssl.provider": _NO_JVM,
    "ssl.keymanager.algorithm": _NO_JVM,
    "ssl.trustmanager.algorithm": _NO_JVM,
    "ssl.secure.random.implementation": _NO_JVM,
    "ssl.engine.factory.class": Refused("it is a Java class; use ssl.keystore.* and ssl.truststore.*"),
    # SASL, beside the login itself
    "sasl.client.callback.handler.class": Refused("it is a Java class; put the login into sasl.jaas.config"),
    "sasl.login.class": Refused("it is a Java class; put the login into sasl.jaas.config"),
    "sasl.login.connect.timeout.ms": _LOGIN_TIMES,
    "sasl.login.read.timeout.ms": _LOGIN_TIMES,
    "sasl.login.refresh.buffer.seconds": _LOGIN_TIMES,
    "sasl.login.refresh.min.period.seconds": _LOGIN_TIMES,
    "sasl.login.refresh.window.factor": _LOGIN_TIMES,
    "sasl.login.refresh.window.jitter": _LOGIN_TIMES,
    "sasl.login.retry.backoff.max.ms": _LOGIN_TIMES,
    "sasl.login.retry.backoff.ms": _LOGIN_TIMES,
    # Java names a program here, librdkafka a whole command line.
    "sasl.kerberos.kinit.cmd": NoEffect("librdkafka has its own command line for kinit"),
    "sasl.kerberos.min.time.before.relogin": Number(
        "sasl.kerberos.min.time.before.relogin", 0, 86_400_000, None, Type.LONG
    ),
    "sasl.kerberos.ticket.renew.jitter": _LOGIN_TIMES,
    "sasl.kerberos.ticket.renew.window.factor": _LOGIN_TIMES,
    **{
        key: Text(key)
        for key in (
            "sasl.oauthbearer.assertion.algorithm",
            "sasl.oauthbearer.assertion.claim.aud",
            "sasl.oauthbearer.assertion.claim.iss",
            "sasl.oauthbearer.assertion.claim.sub",
            "sasl.oauthbearer.assertion.file",
            "sasl.oauthbearer.assertion.private.key.file",
            "sasl.oauthbearer.assertion.private.key.passphrase",
        )
    },
    "sasl.oauthbearer.assertion.claim.exp.seconds": Number(
        "sasl.oauthbearer.assertion.claim.exp.seconds", 1, 86_400
    ),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Number(
        "sasl.oauthbearer.assertion.claim.nbf.seconds", 0, 3_600
    ),
    "sasl.oauthbearer.assertion.claim.jti.include": Switch("sasl.oauthbearer.assertion.claim.jti.include"),
    "sasl.oauthbearer.assertion.template.file": Text("sasl.oauthbearer.assertion.jwt.template.file"),
    "sasl.oauthbearer.jwt.validator.class": _BROKERS_TOKENS,
    "sasl.oauthbearer.clock.skew.seconds": _BROKERS_TOKENS,
    "sasl.oauthbearer.expected.audience": _BROKERS_TOKENS,
    "sasl.oauthbearer.expected.issuer": _BROKERS_TOKENS,
    "sasl.oauthbearer.header.urlencode": NoEffect("librdkafka encodes the header itself", ("", "false")),
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _BROKERS_TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _BROKERS_TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _BROKERS_TOKENS,
    "sasl.oauthbearer.jwks.endpoint.url": _BROKERS_TOKENS,
    "sasl.oauthbearer.scope.claim.name": _BROKERS_TOKENS,
    "sasl.oauthbearer.sub.claim.name": _BROKERS_TOKENS,
}

# The worker has keys of the same names for itself.
_WITH_PREFIX_ONLY: Final[Mapping[str, Rule]] = {
    "config.providers": Refused("providers are set in the worker's config, for all clients"),
    "metric.reporters": _NO_METRICS,
    "metrics.num.samples": _NO_METRICS,
    "metrics.recording.level": _NO_METRICS,
    "metrics.sample.window.ms": _NO_METRICS,
    "auto.include.jmx.reporter": _NO_METRICS,
    "interceptor.classes": NoEffect("interceptors are Java classes"),
}

_OF_CONSUMERS: Final[Mapping[str, Rule]] = {
    "allow.auto.create.topics": Switch("allow.auto.create.topics"),
    "check.crcs": Switch("check.crcs"),
    "fetch.min.bytes": Number("fetch.min.bytes", 1, 100_000_000),
    # Not below librdkafka's message.max.bytes.
    "fetch.max.bytes": Number("fetch.max.bytes", 1_000_000, _MAX_INT - 512),
    "fetch.max.wait.ms": Number("fetch.wait.max.ms", 0, 300_000),
    "max.partition.fetch.bytes": Number("fetch.message.max.bytes", 1, 1_000_000_000),
    "auto.offset.reset": Ours("a connector begins where its offsets say", ("earliest", "latest", "none")),
    "isolation.level": Ours("only committed records are read, always", ("read_committed",)),
    "enable.auto.commit": Ours("offsets are committed with the rows", ("false",)),
    "auto.commit.interval.ms": Ours("offsets are committed with the rows"),
    "group.id": Ours("the group of a connector is connect-<name>"),
    "max.poll.records": Ours("a batch decides how much is read"),
    "max.poll.interval.ms": _NO_GROUP,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "exclude.internal.topics": NoEffect("internal topics are never read by a pattern", ("", "true")),
    "key.deserializer": _BYTES_ONLY,
    "value.deserializer": _BYTES_ONLY,
    "share.acknowledgement.mode": _NO_SHARE,
    "share.acquire.mode": _NO_SHARE,
}

_OF_PRODUCERS: Final[Mapping[str, Rule]] = {
    "batch.size": Number("batch.size", 1, _MAX_INT),
    "buffer.memory": Number("queue.buffering.max.kbytes", 1, _MAX_INT, 0, Type.LONG, 1024),
    "compression.type": Text("compression.codec", ("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.gzip.level": NoEffect("set librdkafka's compression.level instead", ("", "-1")),
    "compression.lz4.level": NoEffect("set librdkafka's compression.level instead"),
    "compression.zstd.level": NoEffect("set librdkafka's compression.level instead"),
    "linger.ms": Number("linger.ms", 0, 59_000, 0, Type.LONG),
    "max.request.size": Number("message.max.bytes", 1_000, 1_000_000_000),
    # An idempotent producer takes no more than five, as in Java.
    "max.in.flight.requests.per.connection": Number("max.in.flight.requests.per.connection", 1, 5, 1),
    # Within the time of a transaction; librdkafka refuses more.
    "delivery.timeout.ms": Number("message.timeout.ms", 1_000, 60_000),
    "acks": Ours(f"{_ALWAYS_IDEMPOTENT}, which waits for all replicas", ("all", "-1")),
    "enable.idempotence": Ours(_ALWAYS_IDEMPOTENT, ("true",)),
    "transactional.id": Ours("a job has a transactional id of its own"),
    "transaction.timeout.ms": Ours("a transaction has a minute", ("60000",)),
    "transaction.two.phase.commit.enable": Refused(
        "two-phase commit of Kafka is not used; remove it", ("", "false")
    ),
    "max.block.ms": NoEffect("calls to Kafka have fixed time limits here"),
    "metadata.max.idle.ms": NoEffect("librdkafka keeps the metadata of topics that are in use"),
    "partitioner.class": Refused(
        "it is a Java class; remove it: keys are hashed as Java's default partitioner does"
    ),
    "partitioner.ignore.keys": Partitioner(),
    "partitioner.adaptive.partitioning.enable": NoEffect("librdkafka spreads records by itself"),
    "partitioner.availability.timeout.ms": NoEffect("librdkafka spreads records by itself", ("", "0")),
    "key.serializer": _BYTES_ONLY,
    "value.serializer": _BYTES_ONLY,
}

TABLE: Final[Mapping[str, Rule]] = {
    **OF_EVERY_CLIENT,
    **_WITH_PREFIX_ONLY,
    **_OF_CONSUMERS,
    **_OF_PRODUCERS,
}

# The requests of a transactional producer must end before its transaction does.
OTHERWISE_FOR_PRODUCERS: Final[Mapping[str, Rule]] = {
    "request.timeout.ms": Number("socket.timeout.ms", 10, 59_900)
}
