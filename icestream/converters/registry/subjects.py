"""Under which subject of a Schema Registry a schema is registered, and the id that it gets; asked when values
are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from icestream.api.config import trimmed
from icestream.api.errors import ConfigError, Problem
from icestream.converters.registry.client import RegisteredSchema, Registry, UnusableSchema

Strategy = Callable[[str, str | None], str]
"""From a topic and the full name of a schema to a subject; raises UnusableSchema where a name is needed."""
_PACKAGE: Final = "io.confluent.kafka.serializers.subject."


def strategy(settings: Mapping[str, str], is_key: bool) -> Strategy:
    """The strategy that a converter's settings name; raises ConfigError."""
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


def _required(name: str | None) -> str:
    if name is None:
        raise UnusableSchema("In configuration the subject name strategy requires a record with a name")
    return name


@dataclass(frozen=True)
class Subjects:
    """The registry as those see it who write values: a schema goes in, its id comes out."""

    registry: Registry
    subject: Strategy
    registers: bool
    """`auto.register.schemas`; otherwise the schema must be there."""
    uses_latest: bool
    """`use.latest.version`: what is written is the subject's newest schema, not the value's."""

    @classmethod
    def configured(cls, settings: Mapping[str, str], registry: Registry, is_key: bool) -> Self:
        registers = trimmed(settings.get("auto.register.schemas", "true")).lower() == "true"
        uses_latest = trimmed(settings.get("use.latest.version", "false")).lower() == "true"
        return cls(registry, strategy(settings, is_key), registers, uses_latest)

    def schema_id(self, topic: str, name: str | None, kind: str, text: str) -> int:
        """The id of a schema; raises UnusableSchema or UnknownSchema."""
        if self.uses_latest:
            return self._latest_id(topic, name, kind, text)
        ask = self.registry.register if self.registers else self.registry.look_up
        return ask(self.subject(topic, name), kind, text)

    def latest(self, topic: str, name: str | None) -> RegisteredSchema:
        return self.registry.latest(self.subject(topic, name))

    def _latest_id(self, topic: str, name: str | None, kind: str, text: str) -> int:
        latest = self.latest(topic, name)
        # JSON is the same text under any schema; a Protobuf message is not.
        if latest.kind == kind and (kind == "JSON" or latest.text == text):
            return latest.id
        raise differs(latest)


def differs(latest: RegisteredSchema) -> UnusableSchema:
    return UnusableSchema(
        f"the latest schema of the subject (id {latest.id}) differs from the value's; register the value's"
        " schema, or set use.latest.version=false"
    )
