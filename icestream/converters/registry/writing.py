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
        if self.uses_latest:
            return self._latest_id(topic, name, kind, text)
        ask = self.registry.register if self.registers else self.registry.look_up
        return ask(self._subject(topic, name), kind, text)

    def latest(self, topic: str, name: str | None) -> RegisteredSchema:
        return self.registry.latest(self._subject(topic, name))

    def _latest_id(self, topic: str, name: str | None, kind: str, text: str) -> int:
        latest = self.latest(topic, name)
        # JSON is the same text under any schema; a Protobuf message is not.
        if latest.kind == kind and (kind == "JSON" or latest.text == text):
            return latest.id
        raise differs(latest)

    def _subject(self, topic: str, name: str | None) -> str:
        try:
            return self.subject(topic, name)
        except NoName as error:
            raise UnusableSchema(str(error)) from None


def differs(latest: RegisteredSchema) -> UnusableSchema:
    return UnusableSchema(
        f"the latest schema of the subject (id {latest.id}) differs from the value's; register the value's"
        " schema, or set use.latest.version=false"
    )
