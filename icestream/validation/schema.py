"""A JSON Schema document, checked and ready to validate values.

`settings` reads it when a config is validated, `validator` in the tasks. Formats are asserted; nothing is
fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import jsonschema_rs

from icestream.api.nesting import NestedTooDeeply, read_json

Retrieve = Callable[[str], Any]
"""Other documents by their address; raises LookupError with a reason."""

DRAFT_7: Final = "http://json-schema.org/draft-07/schema"
DRAFT_2020: Final = "https://json-schema.org/draft/2020-12/schema"
MOST_LEVELS: Final = 255
"""Of a schema: jsonschema-rs takes no more."""
_RETRIEVING: Final = "retrieving it failed: "
_NO_BASE: Final = "No base URI is available"
_NOT_FETCHED: Final = "nothing is fetched, so put it into this document; a file may refer to files beside it"


class BadSchema(ValueError):
    """Says in one sentence what is wrong with the document."""


def _nothing_else(address: str) -> Any:
    raise LookupError(_NOT_FETCHED)


@dataclass(frozen=True)
class SchemaText:
    """A schema as text, complete: what a task is told."""

    text: str
    address: str | None = None
    """Where relative references start."""
    others: tuple[tuple[str, str], ...] = ()
    """Documents that it refers to: address, text."""


@dataclass(frozen=True, eq=False)
class Document:
    schema: Any
    address: str | None = None
    retrieve: Retrieve = _nothing_else

    @property
    def draft(self) -> str:
        """The address of its draft; 2020-12 if it does not say."""
        named = self.schema.get("$schema", DRAFT_2020) if isinstance(self.schema, dict) else DRAFT_2020
        return str(named).removesuffix("#")

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(
            self.schema, validate_formats=True, retriever=self.retrieve, base_uri=self.address
        )


def document(source: SchemaText) -> Document:
    """The schema in a source; raises BadSchema."""
    others = dict(source.others)

    def retrieve(address: str) -> Any:
        return read_json(others[address], MOST_LEVELS) if address in others else _nothing_else(address)

    return checked(source.text, source.address, retrieve)


def checked(text: str, address: str | None, retrieve: Retrieve) -> Document:
    """The same with other documents wherever they are; only those that it needs are asked for."""
    try:
        schema = read_json(text, MOST_LEVELS)
    except NestedTooDeeply:
        raise BadSchema("it is nested too deeply") from None
    except ValueError as error:
        raise BadSchema(f"it is not JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise BadSchema("it is neither a JSON object nor true nor false")
    found = Document(schema, address, retrieve)
    try:
        found.validator  # noqa: B018 (compiling is the check)
    except ValueError as error:
        raise BadSchema(_in_words(error)) from None
    return found


def _in_words(error: ValueError) -> str:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)
    if error.message.startswith("Unknown meta-schema"):
        return f"$schema names a draft that nobody knows; use {DRAFT_7}# or {DRAFT_2020}"
    if _RETRIEVING in error.message:
        target = error.message.partition(" is not present")[0]
        reason = error.message.partition(_RETRIEVING)[2].removeprefix("LookupError: ")
        reason = _NOT_FETCHED if reason == _NO_BASE else reason
        return f"it refers to {target.replace('Resource', 'the document')}: {reason}"
    where = "".join(f"/{step}" for step in error.instance_path)
    return f"{where}: {error.message}" if where else error.message
