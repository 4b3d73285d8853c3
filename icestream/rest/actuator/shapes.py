"""What all answers of the actuator share: their media type, and how they say that there is nothing."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

_TYPES: Final = (
    "application/vnd.spring-boot.actuator.v3+json",
    "application/vnd.spring-boot.actuator.v2+json",
    "application/json",
)
_ANY: Final = ("*/*", "application/*")


def media_type(accept: str) -> str | None:
    """The actuator's own, unless plain JSON is asked for; None: the client takes neither."""
    asked = [item.partition(";")[0].strip().lower() for item in accept.split(",") if item.strip()]
    named = next((kind for kind in asked if kind in _TYPES), None)
    if named is not None:
        return named
    return _TYPES[0] if not asked or any(kind in _ANY for kind in asked) else None


def answer(request: Request, body: Any, status: int = 200) -> Response:
    kind = media_type(request.headers.get("accept", ""))
    if kind is None:
        return Response(status_code=406)
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return Response(text.encode(errors="replace"), status, {"Cache-Control": "no-store"}, kind)


def missing() -> Response:
    return Response(status_code=404)
