"""A request and its answer, without HTTP's machinery: what the handlers of this package see."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.errors import NotFoundError
from icestream.api.nesting import NestedTooDeeply, read_json
from icestream.cluster.service import ConnectorService
from icestream.rest.errors import BadRequest, MalformedBody

JSON_TYPE: Final = "application/json"
EMPTY_FORM: Final = "application/x-www-form-urlencoded"
_MEDIA_TYPE: Final = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*(?:;.*)?", re.DOTALL)

MAX_NAME: Final = 4_000
"""Characters of a connector's name: more would not fit into the URL of a request about it."""
MAX_KEYS: Final = 5_000
"""Keys of a config: it is one record in Kafka, and a megabyte there."""
MAX_VALUES: Final = 200_000
"""Commas in a body: a parser that is fed with millions of them keeps everybody else waiting."""
_LARGE_BODY: Final = 64 * 2**10
_one_large_body = threading.Lock()
_WHOLE_NUMBER: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_INT_MAX: Final = 2**31


@dataclass(frozen=True)
class TopicTracking:
    """`topic.tracking.enable` and `topic.tracking.allow.reset` of the worker."""

    is_enabled: bool = True
    may_reset: bool = True


@dataclass(frozen=True)
class Call:
    """One request: parameters of the path and of the query, and the body's bytes."""

    path: Mapping[str, str]
    query: Mapping[str, list[str]]
    body: bytes
    base_url: str = ""
    topics: TopicTracking = TopicTracking()

    @property
    def connector(self) -> str:
        return self.path["connector"]

    @property
    def task(self) -> int:
        text = self.path["task"]
        number = int(text) if _WHOLE_NUMBER.fullmatch(text) else _INT_MAX
        if not -_INT_MAX <= number < _INT_MAX:
            raise NotFoundError("HTTP 404 Not Found")
        return number

    def flag(self, name: str, default: bool = False) -> bool:
        values = self.query.get(name)
        return values[0].lower() == "true" if values and values[0] else default

    def json_object(self) -> dict[str, Any] | None:
        """The body as a JSON object, None if there is none; numbers stay as they were written."""
        document = _parsed(self.body) if self.body.strip() else None
        if document is not None and not isinstance(document, dict):
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
        raise MalformedBody("The config is missing or not a JSON object; send a map of strings")
    if len(document) > MAX_KEYS:
        raise BadRequest(f"The config has {len(document)} keys; at most {MAX_KEYS} are possible")
    return {_encodable(key): text_from(value, f"the value of '{key}'") for key, value in document.items()}


def checked_name(name: str) -> str:
    if len(name) > MAX_NAME:
        raise BadRequest(f"The connector's name has {len(name)} characters; at most {MAX_NAME} are possible")
    return name


def text_from(value: object, what: str) -> str | None:
    """A scalar as text."""
    if value is None or isinstance(value, Number):
        return value
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = "an object" if isinstance(value, dict) else "a list"
    raise MalformedBody(f"{what} is {kind}; write a string, a number or a boolean")


def _encodable(text: str) -> str:
    """Half of a surrogate pair, which JSON can spell and UTF-8 cannot, becomes a question mark as in Java."""
    return text.encode(errors="replace").decode()


class Number(str):
    """A number as the body has it; only offsets need to know that it was one."""


def _parsed(body: bytes) -> Any:
    if body.count(b",") > MAX_VALUES:
        raise BadRequest(f"The body has more than {MAX_VALUES} values, the most that is taken")
    # The parser holds up all other threads: one large body at a time, and they get their turn in between.
    with _one_large_body if len(body) > _LARGE_BODY else nullcontext():
        return _loaded(body)


def _loaded(body: bytes) -> Any:
    try:
        return read_json(body, parse_int=Number, parse_float=Number, parse_constant=_refuse)
    except NestedTooDeeply:
        raise MalformedBody("The body is not valid JSON: its objects and lists are nested too deep") from None
    except ValueError as error:
        raise MalformedBody(f"The body is not valid JSON: {error}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Content-Type and Accept: everything here is JSON, and a request must be able to send and take it.


class UnreadableType(Exception):
    """The Content-Type header is no media type."""


def is_json_type(content_type: str) -> bool | None:
    """Whether a body of this type can be read; None: its type says nothing, so only an empty one can."""
    if not content_type.strip():
        return None
    matched = _MEDIA_TYPE.fullmatch(content_type)
    if matched is None:
        raise UnreadableType
    kind = f"{matched[1]}/{matched[2]}".lower()
    if kind in ("*/*", "application/*"):
        return None
    return kind == JSON_TYPE


def answer_type_of(accept: str) -> str | None:
    """The Content-Type of the answer to a request with this Accept header; None: it takes no JSON."""
    if not accept.strip():
        return JSON_TYPE
    for item in accept.split(","):
        kind, _, parameters = item.partition(";")
        if kind.strip().lower() in ("*/*", "*", "application/*", JSON_TYPE):
            return JSON_TYPE + _kept(parameters) if kind.strip().lower() == JSON_TYPE else JSON_TYPE
    return None


def _kept(parameters: str) -> str:
    """The parameters that are part of the type; a quality is not."""
    named = (parameter.strip() for parameter in parameters.split(";"))
    return "".join(f";{parameter}" for parameter in named if parameter and not parameter.startswith("q="))
