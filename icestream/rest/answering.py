"""Between Starlette and the handlers: a request's body, what is refused before any handler, and the answer.

Used by `rest/app.py` for Kafka Connect's paths, and by the console for its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from icestream.rest.errors import error_body, http_error_body
from icestream.rest.exchange import EMPTY_FORM, JSON_TYPE, Answer, UnreadableType, is_json_type
from icestream.rest.forward import Original
from icestream.rest.routing import raw_path

MAX_BODY: Final = 5 * 2**20
_MOST_READ: Final = 64 * 2**20


class Refused(Exception):
    """Answered before any handler. Such answers name no media type, as in Kafka Connect, unless typed."""

    def __init__(self, code: int, message: str = "", *, is_typed: bool = False) -> None:
        super().__init__(code, message)
        self.answer = Answer(code, error_body(code, message) if message else http_error_body(code))
        self.media_type = JSON_TYPE if is_typed else None


def is_readable(request: Request) -> bool:
    """Whether a body would be JSON; refuses what Kafka Connect refuses before it looks at the body."""
    content_type = request.headers.get("content-type", "")
    if content_type == EMPTY_FORM and request.headers.get("content-length", "0") == "0":
        # axios says so of every request without a body.
        return False
    try:
        is_json = is_json_type(content_type)
    except UnreadableType:
        raise Refused(400, "Content-Type is no media type", is_typed=True) from None
    if is_json is False:
        raise Refused(415)
    return bool(is_json)


async def body_of(request: Request) -> bytes:
    """What is too large is read to its end all the same, or the client would not hear why it was refused."""
    chunks, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BODY:
            chunks += chunk
        elif size > _MOST_READ:
            break
    if size > MAX_BODY:
        message = f"The body is larger than {MAX_BODY // 2**20} MiB, the most that is taken"
        raise Refused(413, message, is_typed=True)
    return bytes(chunks)


def original_of(request: Request, body: bytes) -> Original:
    query = {name: request.query_params.getlist(name) for name in request.query_params}
    base_url = str(request.base_url).rstrip("/")
    return Original(request.method, raw_path(request.scope), query, request.headers, body, base_url)


def response_of(answer: Answer, media_type: str | None) -> Response:
    headers = dict(answer.headers)
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    return Response(dumped(answer.body), answer.status, headers, media_type=media_type)


def dumped(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


async def in_a_thread(work: Callable[[], Answer], limiter: anyio.CapacityLimiter, timeout: float) -> Answer:
    """What a handler answers; it goes on by itself if it takes longer than its client is to wait."""
    with anyio.move_on_after(timeout):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
    return Answer(500, error_body(500, "Request timed out"))
