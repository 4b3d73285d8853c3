"""A topics file: YAML that says for each topic where its records go; each becomes a connector.
`cluster.topics_file` reads it; a sink plugin says what it makes of an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicEntry:
    """One topic of the file; None: the file does not say, and the environment or a default does."""

    name: str
    """Of the entry, and so of its connector."""
    topic: str
    schema: str | None = None
    """The text of its schema file."""
    bucket: str | None = None
    prefix: str | None = None
    table: str | None = None
    partition_columns: tuple[str, ...] = ()
    batch_size: int | None = None
    flush_seconds: int | None = None
    max_retries: int | None = None


@dataclass(frozen=True)
class TopicsFileRules:
    """What a sink makes of a topics file, in one environment."""

    worker: Mapping[str, str]
    """Properties of a worker that has no file of its own."""
    connector: Callable[[TopicEntry], dict[str, str]]
    """The config of a topic's connector. ConfigError, with keys such as `destination.bucket`."""
