"""A request and its answer, without HTTP's machinery: what the handlers of this package see."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icestream.cluster.service import ConnectorService
from icestream.rest.errors import MalformedBody


@dataclass(frozen=True)
class Call:
    """One request: parameters of the path and of the query, and the body's bytes."""

    path: Mapping[str, Any]
    query: Mapping[str, list[str]]
    body: bytes
    base_url: str = ""

    @property
    def connector(self) -> str:
        return str(self.path["connector"])

    def flag(self, name: str, default: bool = False) -> bool:
        values = self.query.get(name)
        return values[0].strip().lower() == "true" if values else default

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object; numbers stay as they were written."""
        try:
            document = json.loads(self.body, parse_int=str, parse_float=str, parse_constant=str)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise MalformedBody(f"The body is not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise MalformedBody("The body is not a JSON object")
        return document

    def config(self) -> dict[str, str | None]:
        return config_from(self.json_object())


@dataclass(frozen=True)
class Answer:
    """Status, headers and a body that becomes JSON; None is no body at all."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[ConnectorService, Call], Answer]


def config_from(document: object) -> dict[str, str | None]:
    """A map of strings; numbers and booleans as they are written, nulls kept for the validation."""
    if not isinstance(document, dict):
        raise MalformedBody("The config is not a JSON object; send a map of strings")
    return {str(key): _text(str(key), value) for key, value in document.items()}


def _text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = "an object" if isinstance(value, dict) else "a list"
    raise MalformedBody(f"The value of '{key}' is {kind}; write a string, a number or a boolean")
