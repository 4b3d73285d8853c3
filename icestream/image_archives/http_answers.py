"""Answers of registries: read up to a limit, and told in a sentence that has nothing of theirs but codes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from icestream.api.errors import RegistryRefused

if TYPE_CHECKING:
    import httpx

_MOST: Final = 256 * 1024
_CODE: Final = re.compile(r"[A-Z][A-Z_]{2,40}")


def limited_body(answer: httpx.Response) -> bytes:
    """Of an answer that is being streamed."""
    body = b""
    for chunk in answer.iter_raw(64 * 1024):
        body += chunk
        if len(body) > _MOST:
            raise RegistryRefused(
                f"the registry answered with more than {_MOST:,} bytes where a few were due"
            )
    return body


def error_codes(body: bytes) -> str:
    """`: MANIFEST_INVALID, …` of a registry's answer; words of its own never reach a log or a status, because
    an address that a user gave may lead anywhere."""
    try:
        errors = json.loads(body)["errors"]
        codes = [one["code"] for one in errors[:3] if _CODE.fullmatch(one["code"])]
    except (ValueError, KeyError, TypeError, RecursionError):
        codes = []
    return f" ({', '.join(codes)})" if codes else ""
