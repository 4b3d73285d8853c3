"""The keys of a worker's config: Kafka Connect's own for both modes, Kafka's clients', Spark's, ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import REQUIRED, ConfigDef, Setting, Type
from icestream.api.connector_settings import JOB_MANAGER, RETRIES
from icestream.cluster.configs.allowed_hosts import ALLOWED_HOSTS
from icestream.cluster.configs.limits import TASKS_LIMIT
from icestream.cluster.liveness import LIFE
from icestream.cluster.logger_levels import levels_problem
from icestream.cluster.settings.actuator_settings import ACTUATOR
from icestream.cluster.settings.metrics_settings import METRICS
from icestream.cluster.settings.rest_settings import REST
from icestream.jobs.processes.job_place import MOST_MEMORY, PROCESSES
from icestream.logs import FORMATS
from icestream.tracing.settings import TRACES


def _strings(doc: str, *names: str) -> tuple[Setting, ...]:
    return tuple(Setting(name, Type.STRING, None, doc, importance="LOW") for name in names)


WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "plugin.path": "plugins are Python packages",
    "plugin.discovery": "plugins are Python packages",
    "offset.flush.timeout.ms": "offsets are committed with the records they belong to",
    "metric.reporters": "there is no JMX",
    "auto.include.jmx.reporter": "there is no JMX",
    "connect.protocol": "workers speak a protocol of their own",
    "scheduled.rebalance.max.delay.ms": "connectors of a lost worker move at once",
    "worker.sync.timeout.ms": "every worker follows the config topic all the time",
    "worker.unsync.backoff.ms": "every worker follows the config topic all the time",
    "inter.worker.key.generation.algorithm": "workers send each other nothing but what users send",
    "inter.worker.key.size": "workers send each other nothing but what users send",
    "inter.worker.key.ttl.ms": "workers send each other nothing but what users send",
    "inter.worker.signature.algorithm": "workers send each other nothing but what users send",
    "inter.worker.verification.algorithms": "workers send each other nothing but what users send",
}

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

_ICESTREAM: Final = (
    Setting(
        "icestream.log.level",
        Type.STRING,
        "INFO",
        "DEBUG, INFO, WARNING or ERROR.",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    ),
    Setting(
        "icestream.log.format",
        Type.STRING,
        "text",
        "text: lines for people. json: one object per line, also for what Spark and libraries write.",
        choices=FORMATS,
    ),
    Setting(
        "icestream.log.loggers",
        Type.STRING,
        "",
        "Levels of single loggers, such as org.apache.kafka.connect=DEBUG,uvicorn=WARN.",
        check=levels_problem,
    ),
    Setting(
        "icestream.audit.file",
        Type.STRING,
        "",
        "A file for the audit log of REST (who changed what, from where; failed logins), besides the log.",
        importance="LOW",
    ),
    Setting(
        "icestream.unknown.keys",
        Type.STRING,
        "typos",
        "Keys that nobody knows: error, typos or accept.",
        choices=("error", "typos", "accept"),
    ),
    Setting(
        "icestream.topics.file",
        Type.STRING,
        "",
        "A YAML file that lists topics: each gets its connector when the worker starts.",
        importance="LOW",
    ),
    *TRACES.settings,
    TASKS_LIMIT,
    ALLOWED_HOSTS,
    *LIFE.settings,
    *ACTUATOR.settings,
    *RETRIES.settings,
    *JOB_MANAGER.settings,
    PROCESSES,
    MOST_MEMORY,
)

_BOTH_MODES: Final = (
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
                "task.shutdown.graceful.timeout.ms", Type.LONG, 5000, "How long a stop may take.", at_least=0
            ),
            Setting(
                "offset.flush.interval.ms",
                Type.LONG,
                60_000,
                "How often sources that are not exactly-once write their offsets.",
                at_least=1,
            ),
            Setting(
                "topic.tracking.enable", Type.BOOLEAN, True, "Whether GET …/topics answers.", importance="LOW"
            ),
            Setting(
                "topic.tracking.allow.reset",
                Type.BOOLEAN,
                True,
                "Whether PUT …/topics/reset is allowed.",
                importance="LOW",
            ),
            Setting(
                "topic.creation.enable",
                Type.BOOLEAN,
                True,
                "Whether sources may create topics by topic.creation.*.",
                importance="LOW",
            ),
            Setting(
                "connector.client.config.override.policy",
                Type.STRING,
                "All",
                "Which client settings connectors may override: All, None, Principal or Allowlist.",
            ),
            Setting(
                "connector.client.config.override.allowlist",
                Type.LIST,
                [],
                "The keys that the policy Allowlist allows.",
            ),
            Setting("config.providers", Type.LIST, [], "Names of config providers.", importance="LOW"),
            *_ICESTREAM,
            *_strings("Has no effect here.", *WITHOUT_EFFECT),
            *_strings("Kafka's client setting.", *_CLIENT),
        ),
        prefixes=(
            "producer.",
            "consumer.",
            "admin.",
            "spark.",
            "sasl.",
            "metrics.",
            "config.providers.",
        ),
    )
    + REST
    + METRICS
)

_STANDALONE_ONLY: Final = ConfigDef(
    (
        Setting(
            "offset.storage.file.filename",
            Type.STRING,
            "",
            "Where offsets of sources are kept; connectors are kept beside it.",
            importance="HIGH",
        ),
        Setting("icestream.state.file", Type.STRING, "", "Where connectors and their states are kept."),
    )
)


def _topic(kind: str, doc: str) -> tuple[Setting, ...]:
    return (
        Setting(f"{kind}.storage.topic", Type.STRING, REQUIRED, doc, importance="HIGH"),
        Setting(
            f"{kind}.storage.replication.factor",
            Type.INT,
            3,
            "Copies of this topic when we create it; -1 is the broker's default.",
            importance="LOW",
            check=lambda copies: None if copies == -1 or copies > 0 else "must be -1 or larger than 0",
        ),
    )


def _partitions(kind: str, default: int) -> Setting:
    return Setting(
        f"{kind}.storage.partitions",
        Type.INT,
        default,
        "Partitions of this topic when we create it; -1 is the broker's default.",
        importance="LOW",
        check=lambda count: None if count == -1 or count > 0 else "must be -1 or larger than 0",
    )


_DISTRIBUTED_ONLY: Final = ConfigDef(
    (
        Setting(
            "group.id", Type.STRING, REQUIRED, "Workers with the same one are a cluster.", importance="HIGH"
        ),
        Setting(
            "session.timeout.ms", Type.INT, 10_000, "A worker that is silent for so long is dead.", at_least=1
        ),
        Setting("rebalance.timeout.ms", Type.INT, 60_000, "How long a rebalance may take.", at_least=1),
        Setting("heartbeat.interval.ms", Type.INT, 3_000, "How often a worker says it lives.", at_least=1),
        Setting(
            "exactly.once.source.support",
            Type.STRING,
            "disabled",
            "enabled: records of sources and their offsets are one transaction.",
            choices=("disabled", "preparing", "enabled"),
        ),
        *_topic("offset", "Offsets of sources."),
        _partitions("offset", 25),
        *_topic("config", "Connectors, and what is wanted of them."),
        *_topic("status", "States of connectors and tasks."),
        _partitions("status", 5),
    ),
    prefixes=("offset.storage.", "config.storage.", "status.storage."),
)

STANDALONE: Final = _BOTH_MODES + _STANDALONE_ONLY
DISTRIBUTED: Final = _BOTH_MODES + _DISTRIBUTED_ONLY


def of_the_other_mode(definition: ConfigDef) -> set[str]:
    """Keys that people leave in the file when they change modes: known, without effect."""
    other = _DISTRIBUTED_ONLY if definition is STANDALONE else _STANDALONE_ONLY
    return set(other.names)
