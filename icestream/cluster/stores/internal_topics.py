"""The three topics of a distributed worker: made if they are missing, checked if they exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.kafka.topics import Topics

_KINDS: Final = {"offset": 25, "config": 1, "status": 5}
"""How many partitions each has by default; the order of configs matters, so they have one."""

_SEGMENT_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class InternalTopic:
    kind: str
    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


def internal_topics(worker: Config) -> list[InternalTopic]:
    """As `<kind>.storage.topic`, `.partitions`, `.replication.factor` and the like say."""
    return [_internal_topic(worker, kind, partitions) for kind, partitions in _KINDS.items()]


def _internal_topic(worker: Config, kind: str, partitions: int) -> InternalTopic:
    prefix = f"{kind}.storage."
    own = {"topic", "partitions", "replication.factor", "file.filename"}
    extra = {
        key.removeprefix(prefix): value
        for key, value in worker.items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in own
    }
    count = 1 if kind == "config" else int(worker.get(f"{prefix}partitions", partitions))
    replication = int(worker.get(f"{prefix}replication.factor", 3))
    name = worker.get(f"{prefix}topic", "").strip()
    # Kafka compacts closed segments only, and workers read all of these topics when they start.
    config = {"segment.bytes": str(_SEGMENT_BYTES), **extra, "cleanup.policy": "compact"}
    return InternalTopic(kind, name, count, replication, config)


def prepare_internal_topics(topics: Topics, wanted: list[InternalTopic]) -> None:
    """Raises ConfigError when a topic is not what it must be."""
    brokers = topics.brokers()
    existing = topics.describe(topic.name for topic in wanted)
    problems: list[Problem] = []
    for topic in wanted:
        if topic.name in existing:
            problems += wrong_with(topic, existing[topic.name].partitions, topics.config(topic.name))
        else:
            problems += _create(topics, topic, brokers)
    if problems:
        raise ConfigError(problems)


def wrong_with(topic: InternalTopic, partitions: int, config: Mapping[str, str]) -> list[Problem]:
    """Why a topic that exists cannot serve."""
    key = f"{topic.kind}.storage.topic"
    problems: list[Problem] = []
    if topic.kind == "config" and partitions != 1:
        problems.append(
            Problem(
                key,
                f"topic '{topic.name}' of '{key}' has {partitions} partitions, and configs need one: their "
                "order matters; name another topic, or create this one anew with one",
            )
        )
    if (policy := config.get("cleanup.policy", "")) != "compact":
        problems.append(
            Problem(
                key,
                f"topic '{topic.name}' of '{key}' has cleanup.policy={policy}, and would forget; set "
                "cleanup.policy=compact on it",
            )
        )
    return problems


def _create(topics: Topics, topic: InternalTopic, brokers: int) -> list[Problem]:
    if topic.replication > brokers:
        key = f"{topic.kind}.storage.replication.factor"
        return [
            Problem(
                key,
                f"'{key}={topic.replication}' is more than the {brokers} broker(s) there are; set it to "
                f"{brokers}, or start more brokers",
            )
        ]
    topics.create(topic.name, topic.partitions, topic.replication, topic.config)
    return []
