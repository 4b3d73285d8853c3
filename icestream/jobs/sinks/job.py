"""What the manager of a sink must know of its config, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icestream.api.config import Config, subset
from icestream.api.connector_settings import SINK_CONNECTOR
from icestream.api.maintenance import MaintenanceRhythm
from icestream.api.sink import Filling, SinkOptions


@dataclass(frozen=True)
class DeadLetterSettings:
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
class SinkJob:
    name: str
    topics: Sequence[str]
    topics_pattern: str | None
    limits: Limits
    tasks_max: int
    tolerates_all: bool
    logs_rejects: bool
    logs_messages: bool
    dead_letters: DeadLetterSettings | None
    group: str
    transactional_id: str
    begins_at: str
    """`earliest` or `latest`: where a job begins that has neither a checkpoint nor group offsets."""
    maintenance: MaintenanceRhythm | None = None
    commit_threads: int = 1
    """How many targets are committed at the same time."""
    most_failed_commits: int | None = None
    """So many in a row, and the job fails; None: never for this."""
    filling: Filling | None = None
    """When a batch is worth it; None: whatever there is makes one."""


def sink_job(name: str, config: Config, options: SinkOptions) -> SinkJob:
    sink = SINK_CONNECTOR.parse({**config, "name": name})
    dead_letter_topic = sink["errors.deadletterqueue.topic.name"]
    group = options.group or f"connect-{name}"
    rows, size = sink["icestream.commit.rows"], sink["icestream.commit.bytes"]
    return SinkJob(
        name=name,
        topics=tuple(sink["topics"] or ()),
        topics_pattern=sink["topics.regex"] or None,
        limits=Limits(
            interval=options.commit_seconds,
            rows=min(rows, options.most_rows or rows),
            bytes=min(size, options.most_bytes or size),
        ),
        tasks_max=sink["tasks.max"],
        tolerates_all=sink["errors.tolerance"] == "all",
        logs_rejects=sink["errors.log.enable"],
        logs_messages=sink["errors.log.include.messages"],
        dead_letters=DeadLetterSettings(
            dead_letter_topic,
            sink["errors.deadletterqueue.topic.replication.factor"],
            sink["errors.deadletterqueue.context.headers.enable"],
        )
        if dead_letter_topic
        else None,
        group=group,
        transactional_id=f"{options.transactional_prefix}{group}-coordinator",
        begins_at=subset(config, "consumer.override.").get("auto.offset.reset", "earliest"),
        maintenance=options.maintenance,
        commit_threads=options.commit_threads,
        most_failed_commits=options.most_failed_commits,
        filling=options.filling,
    )
