"""Answers of registries: read up to a limit, and told in a sentence that has nothing of theirs but codes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from icestream.api.errors import RegistryRefused, RegistryUnavailable
from icestream.api.nesting import read_json

if TYPE_CHECKING:
    import httpx

_MOST: Final = 256 * 1024
_PATIENCE: Final = 60.0
"""Seconds for all of it, once it has begun: byte by byte, it would take days."""
_CODE: Final = re.compile(r"[A-Z][A-Z_]{2,40}")


def limited_body(answer: httpx.Response, clock: Callable[[], float] = time.monotonic) -> bytes:
    """Of an answer that is being streamed."""
    body, deadline = b"", clock() + _PATIENCE
    # In the pieces that come: whole ones of a size would be waited for.
    for chunk in answer.iter_raw():
        body += chunk
        if len(body) > _MOST:
            raise RegistryRefused(
                f"the registry answered with more than {_MOST:,} bytes where a few were due"
            )
        if clock() > deadline:
            raise RegistryUnavailable(f"the registry's answer has no end after {_PATIENCE:.0f} s")
    return body


def error_codes(body: bytes) -> str:
    """`: MANIFEST_INVALID, …` of a registry's answer; words of its own never reach a log or a status, because
    an address that a user gave may lead anywhere."""
    try:
        errors = read_json(body)["errors"]
        codes = [one["code"] for one in errors[:3] if _CODE.fullmatch(one["code"])]
    except (ValueError, KeyError, TypeError):
        codes = []
    return f" ({', '.join(codes)})" if codes else ""
