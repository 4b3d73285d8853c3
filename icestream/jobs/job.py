"""What a sink job is, read once from its connector config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from icestream.api.config import Config, subset
from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.connectors.iceberg.settings import ICEBERG_SINK


@dataclass(frozen=True)
class DeadLetters:
    topic: str
    replication: int
    with_context: bool


@dataclass(frozen=True)
class Limits:
    """When a batch starts, and how large it may be."""

    interval: float
    """Seconds from batch to batch while nothing waits."""
    rows: int
    bytes: int


@dataclass(frozen=True)
class Job:
    name: str
    topics: Sequence[str]
    topics_pattern: str | None
    catalog: str
    tables: Sequence[str]
    limits: Limits
    tasks_max: int
    evolves: bool
    tolerates_all: bool
    logs_rejects: bool
    logs_messages: bool
    dead_letters: DeadLetters | None
    control_topic: str
    group: str
    transactional_id: str
    begins_at: str
    """`earliest` or `latest`: where a job begins that has neither a checkpoint nor group offsets."""
    config: Config = field(repr=False)
    """All of it: what becomes of a record is for the pipeline to read."""


def job_from(name: str, config: Config) -> Job:
    sink, iceberg = SINK_CONNECTOR.parse({**config, "name": name}), ICEBERG_SINK.parse(config)
    dead_letter_topic = sink["errors.deadletterqueue.topic.name"]
    group = iceberg["iceberg.connect.group-id"] or f"connect-{name}"
    consumer = subset(config, "consumer.override.")
    return Job(
        name=name,
        topics=tuple(sink["topics"] or ()),
        topics_pattern=sink["topics.regex"] or None,
        catalog=iceberg["iceberg.catalog"] or "iceberg",
        tables=tuple(iceberg["iceberg.tables"]),
        limits=Limits(
            interval=iceberg["iceberg.control.commit.interval-ms"] / 1000,
            rows=sink["icestream.commit.rows"],
            bytes=sink["icestream.commit.bytes"],
        ),
        tasks_max=sink["tasks.max"],
        evolves=iceberg["iceberg.tables.evolve-schema-enabled"],
        tolerates_all=sink["errors.tolerance"] == "all",
        logs_rejects=sink["errors.log.enable"],
        logs_messages=sink["errors.log.include.messages"],
        dead_letters=DeadLetters(
            dead_letter_topic,
            sink["errors.deadletterqueue.topic.replication.factor"],
            sink["errors.deadletterqueue.context.headers.enable"],
        )
        if dead_letter_topic
        else None,
        control_topic=iceberg["iceberg.control.topic"],
        group=group,
        transactional_id=f"{iceberg['iceberg.coordinator.transactional.prefix'] or ''}{group}-coordinator",
        begins_at=consumer.get("auto.offset.reset", "earliest"),
        config=config,
    )
