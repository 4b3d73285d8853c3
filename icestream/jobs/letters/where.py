"""Filters of dead letters in words, the options of `icestream dlq` as `name=value`: parsed, never evaluated.

`topic=orders stage=TRANSFORMATION reason="does not fit" since=2026-11-15T10:30`
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from icestream.api.errors import BadFilter
from icestream.jobs.publishing.dead_letters import DeadLetterFilter

NAMES: Final = ("topic", "partition", "offset", "stage", "reason", "since", "until")
_LONGEST: Final = 2_000
_TERM: Final = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"']+))(?=\s|$)")
_SHAPE: Final = 'write name=value, such as topic=orders reason="does not fit"'


def filter_from(text: str, group: str | None = None) -> DeadLetterFilter:
    """The filter that a text means; `BadFilter` says what cannot be understood."""
    if len(text) > _LONGEST:
        raise BadFilter(f"the filter has {len(text):,} characters; at most {_LONGEST:,} are taken")
    found: dict[str, Any] = {}
    offsets: list[int] = []
    at = 0
    while text[at:].strip():
        term = _TERM.match(text, at)
        if term is None:
            raise BadFilter(f"'{text[at:].strip()[:40]}' is no part of a filter; {_SHAPE}")
        name = term[1].lower()
        value = next(part for part in term.groups()[1:] if part is not None)
        if name == "offset":
            offsets.append(_number(name, value))
        elif name in found:
            raise BadFilter(f"'{name}' is given twice; write it once")
        else:
            found[name] = _value(name, value)
        at = term.end()
    return DeadLetterFilter(**found, offsets=tuple(offsets), group=group)


def time_from(text: str) -> datetime:
    """A moment, in UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadFilter(
            f"'{text}' is no time; write 2026-11-15T10:30 (UTC) or 2026-11-15T10:30:00+01:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _value(name: str, text: str) -> Any:
    if name not in NAMES:
        raise BadFilter(f"a filter knows no '{name}'; it knows {', '.join(NAMES)}")
    if name == "partition":
        return _number(name, text)
    return time_from(text) if name in ("since", "until") else text


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise BadFilter(f"'{name}={text[:40]}' is no whole number")
    return int(text)
