"""The keys of a sink connector that name JSON Schemas; the control plane validates with them, jobs read them.

`value.schema.file` and `value.schema.inline` are for all topics, `value.schema.<topic>.file` and
`value.schema.<topic>.inline` for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type, trimmed
from icestream.api.errors import ConfigError, Problem
from icestream.validation.files import source_in
from icestream.validation.schema import BadSchema, Source, document
from icestream.validation.validator import Schemas

PREFIX: Final = "value.schema."
_FILE: Final = "file"
_INLINE: Final = "inline"

SETTINGS: Final = ConfigDef(
    (
        Setting(
            PREFIX + _FILE,
            Type.STRING,
            None,
            "A JSON Schema (draft-07 or 2020-12) in a file of the worker: a value that breaks its rules is a "
            "bad record. For one topic only: value.schema.<topic>.file.",
            importance="LOW",
            group="Validation",
            order=0,
            width="LONG",
            display_name="JSON Schema file",
        ),
        Setting(
            PREFIX + _INLINE,
            Type.STRING,
            None,
            "The same, with the schema itself as the value. For one topic only: value.schema.<topic>.inline.",
            importance="LOW",
            group="Validation",
            order=1,
            width="LONG",
            display_name="JSON Schema",
        ),
    ),
    prefixes=(PREFIX,),
)


def problems(config: Mapping[str, str | None]) -> list[Problem]:
    """What is wrong with the schemas of a config; opens their files."""
    return _read({key: value for key, value in config.items() if value is not None})[1]


def schemas_of(config: Config) -> Schemas | None:
    """The schemas that a config names, None if it names none; raises ConfigError with every problem."""
    found, wrong = _read(config)
    if wrong:
        raise ConfigError(wrong)
    return found if found.general or found.of_topic else None


def _read(config: Config) -> tuple[Schemas, list[Problem]]:
    sources: dict[str, Source] = {}
    wrong: list[Problem] = []
    for key in sorted(key for key in config if key.startswith(PREFIX)):
        topic, dot, kind = key.removeprefix(PREFIX).rpartition(".")
        try:
            if kind not in (_FILE, _INLINE) or (dot and not topic):
                raise BadSchema(f"such a key is {PREFIX}<topic>.{_FILE} or {PREFIX}<topic>.{_INLINE}")
            if topic in sources:
                raise BadSchema(f"there is {PREFIX}{topic and topic + '.'}{_FILE}, too; keep one of them")
            sources[topic] = _source(kind, trimmed(config[key]))
            _refuse_stranger(topic, config)
        except BadSchema as error:
            wrong.append(
                Problem(key, f"Invalid value {_shown(kind, config[key])} for configuration {key}: {error}")
            )
    return Schemas(sources.pop("", None), sources), wrong


def _source(kind: str, value: str) -> Source:
    if kind == _FILE:
        return source_in(value)
    document(Source(value))
    return Source(value)


def _refuse_stranger(topic: str, config: Config) -> None:
    topics = [name.strip() for name in config.get("topics", "").split(",") if name.strip()]
    if topic and topics and topic not in topics:
        raise BadSchema(f"the connector does not read topic {topic}, only {', '.join(topics)}")


def _shown(kind: str, value: str) -> str:
    """A whole schema would hide the reason."""
    return value if kind == _FILE or len(value) <= 80 else f"{value[:77]}..."
