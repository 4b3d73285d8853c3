"""A dead letter as plain facts: for `icestream dlq show -o json` and for the console."""

from __future__ import annotations

import base64
from typing import Any

from icestream.jobs.publishing.dead_letters import DeadLetter


def row_of(letter: DeadLetter, replayed: bool) -> dict[str, Any]:
    """What a line of a table tells; bytes as text, as far as they are."""
    origin = letter.origin
    return {
        "topic": origin.topic if origin else None,
        "partition": origin.number if origin else None,
        "offset": letter.origin_offset,
        "stage": letter.context.get("stage"),
        "class": letter.context.get("class.name"),
        "exception": letter.context.get("exception.class.name"),
        "reason": letter.context.get("exception.message"),
        "time": letter.time.isoformat() if letter.time else None,
        "key": _text(letter.key),
        "value": _text(letter.value),
        "replayed": replayed,
    }


def document_of(letter: DeadLetter, replayed: bool) -> dict[str, Any]:
    """All of it; bytes that are no text also in base 64."""
    row = row_of(letter, replayed)
    bytes_of = {"key": letter.key, "value": letter.value}
    exact = {
        f"{name}_base64": base64.b64encode(content).decode()
        for name, content in bytes_of.items()
        if content is not None and row[name].encode() != content
    }
    queue = {"topic": letter.place.topic, "partition": letter.place.number, "offset": letter.offset}
    return {**row, **exact, "queue": queue}


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
