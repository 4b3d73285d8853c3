"""How schemas get into a registry when values are written; made from a converter's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from icestream.api.config import trimmed
from icestream.converters.registry.client import RegisteredSchema
from icestream.converters.registry.converter import Registry, UnusableSchema
from icestream.converters.registry.subjects import NoName, Strategy, strategy


@dataclass(frozen=True)
class Writing:
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
        try:
            subject = self.subject(topic, name)
        except NoName as error:
            raise UnusableSchema(str(error)) from None
        ask = self.registry.register if self.registers else self.registry.look_up
        return ask(subject, kind, text)

    def latest(self, topic: str, name: str | None) -> RegisteredSchema:
        try:
            return self.registry.latest(self.subject(topic, name))
        except NoName as error:
            raise UnusableSchema(str(error)) from None
