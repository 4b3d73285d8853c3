"""A JSON Schema document: whether it is one, who judges single values by it and by its parts.

`settings` asks at validate time, `rules` in the tasks. Formats are asserted, and nothing is ever fetched.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import jsonschema_rs

_ADDRESS: Final = "json-schema:///connector"
"""Under which parts of a document are referred to; never asked for over a network."""
_COMPILED_DRAFTS: Final = (jsonschema_rs.Draft7Validator, jsonschema_rs.Draft202012Validator)


class BadSchema(ValueError):
    """Says in one sentence what is wrong with the document."""


@dataclass(frozen=True, eq=False)
class Document:
    schema: Any

    @property
    def kind(self) -> type[jsonschema_rs.Validator]:
        """The draft that `$schema` names; 2020-12 without it."""
        return jsonschema_rs.validator_cls_for(self.schema)

    @property
    def compiles(self) -> bool:
        """Whether it is of a draft that `compile` knows."""
        return self.kind in _COMPILED_DRAFTS

    @property
    def is_draft_7(self) -> bool:
        return self.kind is jsonschema_rs.Draft7Validator

    @cached_property
    def judge(self) -> jsonschema_rs.Validator:
        return self.kind(self.schema, validate_formats=True, offline=True)

    def judge_of(self, pointer: str) -> jsonschema_rs.Validator:
        """Judges values by the part of the document at a JSON pointer."""
        return self._made({"$ref": f"{_ADDRESS}#{quote(pointer)}"})

    def judge_of_columns(self, pointer: str) -> jsonschema_rs.Validator:
        """Judges lists of such values, each list at once."""
        return self._made({"items": {"$ref": f"{_ADDRESS}#{quote(pointer)}"}})

    @cached_property
    def _registry(self) -> jsonschema_rs.Registry:
        return jsonschema_rs.Registry([(_ADDRESS, self.schema)])

    def _made(self, schema: dict[str, Any]) -> jsonschema_rs.Validator:
        return self.kind(schema, validate_formats=True, offline=True, registry=self._registry)


def document(text: str) -> Document:
    """The schema in a text; raises BadSchema."""
    try:
        schema = json.loads(text)
    except RecursionError:
        raise BadSchema("it is nested too deeply") from None
    except ValueError as error:
        raise BadSchema(f"it is not JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise BadSchema("it is neither a JSON object nor true nor false")
    found = Document(schema)
    try:
        found.judge  # noqa: B018 (compiling is the check)
    except ValueError as error:
        raise BadSchema(_in_words(error)) from None
    return found


def _in_words(error: ValueError) -> str:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)
    message = error.message
    if "retrieving it failed" in message:
        return (
            f"{message.split(' is not present')[0]} is not in it, and nothing is fetched: put it into $defs"
        )
    where = "".join(f"/{step}" for step in error.instance_path)
    return f"{where}: {message}" if where else message
