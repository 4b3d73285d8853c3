"""Content-Type and Accept: everything here is JSON, and a request must be able to send and take it."""

from __future__ import annotations

import re
from typing import Final

JSON: Final = "application/json"
EMPTY_FORM: Final = "application/x-www-form-urlencoded"
_MEDIA_TYPE: Final = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*(?:;.*)?", re.DOTALL)


class UnreadableType(Exception):
    """The Content-Type header is no media type."""


def is_json(content_type: str) -> bool | None:
    """Whether a body of this type can be read; None: its type says nothing, so only an empty one can."""
    if not content_type.strip():
        return None
    matched = _MEDIA_TYPE.fullmatch(content_type)
    if matched is None:
        raise UnreadableType
    kind = f"{matched[1]}/{matched[2]}".lower()
    if kind in ("*/*", "application/*"):
        return None
    return kind == JSON


def answer_type(accept: str) -> str | None:
    """The Content-Type of the answer to a request with this Accept header; None: it takes no JSON."""
    if not accept.strip():
        return JSON
    for item in accept.split(","):
        kind, _, parameters = item.partition(";")
        if kind.strip().lower() in ("*/*", "*", "application/*", JSON):
            return JSON + _kept(parameters) if kind.strip().lower() == JSON else JSON
    return None


def _kept(parameters: str) -> str:
    """The parameters that are part of the type; a quality is not."""
    named = (parameter.strip() for parameter in parameters.split(";"))
    return "".join(f";{parameter}" for parameter in named if parameter and not parameter.startswith("q="))
