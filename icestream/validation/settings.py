"""The keys of a sink connector that name JSON Schemas; the control plane validates with them, jobs read them.

`value.schema.file` and `value.schema.inline` are for all topics, `value.schema.<topic>.file` and
`value.schema.<topic>.inline` for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from icestream.api.config import Config, ConfigDef, Setting, Type, trimmed
from icestream.api.errors import ConfigError, Problem
from icestream.api.nesting import NestedTooDeeply, read_json
from icestream.validation.schema import MOST_LEVELS, BadSchema, SchemaText, checked, document
from icestream.validation.validator import TopicSchemas

PREFIX: Final = "value.schema."
_FILE: Final = "file"
_INLINE: Final = "inline"
_LARGEST_FILE: Final = 10_000_000

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


def schemas_of(config: Config) -> TopicSchemas | None:
    """The schemas that a config names, None if it names none; raises ConfigError with every problem."""
    found, wrong = _read(config)
    if wrong:
        raise ConfigError(wrong)
    return found if found.general or found.of_topic else None


def _read(config: Config) -> tuple[TopicSchemas, list[Problem]]:
    sources: dict[str, SchemaText] = {}
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
    return TopicSchemas(sources.pop("", None), sources), wrong


def _source(kind: str, value: str) -> SchemaText:
    if kind == _FILE:
        return _source_in(value)
    document(SchemaText(value))
    return SchemaText(value)


def _refuse_stranger(topic: str, config: Config) -> None:
    topics = [name.strip() for name in config.get("topics", "").split(",") if name.strip()]
    if topic and topics and topic not in topics:
        raise BadSchema(f"the connector does not read topic {topic}, only {', '.join(topics)}")


def _shown(kind: str, value: str) -> str:
    """A whole schema would hide the reason."""
    return value if kind == _FILE or len(value) <= 80 else f"{value[:77]}..."


def _source_in(path: str) -> SchemaText:
    """The schema in a file of the worker with the files that it refers to, checked; raises BadSchema."""
    file = Path(path).expanduser().absolute()
    others: dict[str, str] = {}

    def retrieve(address: str) -> Any:
        others[address] = _referred(address)
        return read_json(others[address], MOST_LEVELS)

    text = _text_of(file)
    checked(text, file.as_uri(), retrieve)
    return SchemaText(text, file.as_uri(), tuple(others.items()))


def _referred(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme != "file":
        raise LookupError("nothing is fetched, so put it into a file beside this one")
    try:
        text = _text_of(Path(unquote(parts.path)))
        read_json(text, MOST_LEVELS)
    except (BadSchema, NestedTooDeeply) as error:
        raise LookupError(str(error)) from None
    except ValueError as error:
        raise LookupError(f"it is not JSON: {error}") from None
    return text


def _text_of(file: Path) -> str:
    try:
        if not file.is_file():
            raise BadSchema(f"there is no file {file}")
        if file.stat().st_size > _LARGEST_FILE:
            raise BadSchema(f"{file} is larger than {_LARGEST_FILE // 1_000_000} MB")
        return file.read_text("utf-8")
    except OSError as error:
        raise BadSchema(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadSchema(f"{file} is not UTF-8") from None
