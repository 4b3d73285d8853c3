"""The subject of a Schema Registry under which a schema is registered; asked when values are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from icestream.api.errors import ConfigError, Problem

Strategy = Callable[[str, str | None], str]
"""From a topic and the full name of a schema to a subject."""
_PACKAGE: Final = "io.confluent.kafka.serializers.subject."


def strategy(settings: Mapping[str, str], is_key: bool) -> Strategy:
    side = "key" if is_key else "value"
    key = f"{side}.subject.name.strategy"
    given = settings.get(key, "").strip() or f"{_PACKAGE}TopicNameStrategy"
    match given.removeprefix(_PACKAGE):
        case "TopicNameStrategy":
            return lambda topic, name: f"{topic}-{side}"
        case "RecordNameStrategy":
            return lambda topic, name: _required(name)
        case "TopicRecordNameStrategy":
            return lambda topic, name: f"{topic}-{_required(name)}"
    known = "TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy"
    message = f"Invalid value {given} for configuration {key}: this worker knows {known}"
    raise ConfigError([Problem(key, message)])


class NoName(ValueError):
    """The strategy needs the name of a record, and the schema has none."""


def _required(name: str | None) -> str:
    if name is None:
        raise NoName("In configuration the subject name strategy requires a record with a name")
    return name
