"""Which rows are read next, as SQL: pure functions of how far a table is and how far it may be read.

A window has fixed ends: it begins after a position and ends at a number or timestamp that was the greatest
when it was opened (`commit_order.py` says when all rows up to there are visible). Its rows come in the order
of their numbers, or of their timestamps and keys.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.connectors.jdbc.source.offsets import Position


@dataclass(frozen=True)
class Cursors:
    """What a table is read by, as expressions of its database."""

    number: str | None = None
    timestamp: str | None = None
    literal: Callable[[int], str] | None = None
    """A timestamp (nanoseconds since 1970) as the column has it, for a comparison with `timestamp`."""
    keys: Sequence[str] = ()
    """Columns that tell rows of one timestamp apart, and that bulk reads go by; none if there is no key."""
    quote_value: Callable[[Any], str] = repr
    """A value of a key, as SQL."""
    zone: dt.tzinfo = dt.UTC
    """In which the database tells timestamps of the column."""

    @property
    def is_bulk(self) -> bool:
        return self.number is None and self.timestamp is None


@dataclass(frozen=True)
class Window:
    """Rows after `start`, up to and with `number`, or with the timestamp `timestamp` (nanoseconds)."""

    start: Position
    number: int | None = None
    timestamp: int | None = None


_QUARTER: Final = dt.timedelta(minutes=15)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def settled(nanoseconds: int, zone: dt.tzinfo) -> int:
    """Before which wall-clock times no new one can come, as of a moment: the moment itself, but in the hour
    that a clock is about to show again, when its first showing began. Zones change at quarters of an hour."""
    now = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
    shown = now.astimezone(zone).replace(tzinfo=None)
    quarter = now - (now - _EPOCH) % _QUARTER
    coming = (quarter + step * _QUARTER for step in range(1, 13))
    least = min((moment.astimezone(zone).replace(tzinfo=None) for moment in coming), default=shown)
    return nanoseconds if least >= shown else nanoseconds - (shown - least) // _MICROSECOND * 1000


def order_by(cursors: Cursors) -> list[str]:
    if cursors.timestamp is None:
        return [cursors.number] if cursors.number is not None else list(cursors.keys)
    return [cursors.timestamp, *([cursors.number] if cursors.number is not None else cursors.keys)]


def after(position: Position, cursors: Cursors) -> list[str]:
    """The rows that a position leaves to read, as conditions that all hold."""
    if cursors.is_bulk:
        return [_after_key(cursors, position.dump_key)] if position.dump_key and cursors.keys else []
    if cursors.timestamp is None:
        return [f"{cursors.number} > {position.incrementing}"] if position.incrementing is not None else []
    assert cursors.literal is not None
    if position.part is not None and cursors.number is None and cursors.keys:
        begun, key = position.part
        at = cursors.literal(begun)
        of_part = f"({cursors.timestamp} = {at} AND {_after_key(cursors, key)})"
        return [f"{cursors.timestamp} >= {at}", f"({of_part} OR {cursors.timestamp} > {at})"]
    if position.timestamp is None:
        return []
    at = cursors.literal(position.timestamp)
    if cursors.number is None:
        return [f"{cursors.timestamp} > {at}"]
    number = -1 if position.incrementing is None else position.incrementing
    equal = f"({cursors.timestamp} = {at} AND {cursors.number} > {number})"
    # The first lets an index be used, which databases do not see in the second.
    return [f"{cursors.timestamp} >= {at}", f"({equal} OR {cursors.timestamp} > {at})"]


def _after_key(cursors: Cursors, key: Sequence[Any]) -> str:
    values = [cursors.quote_value(value) for value in key]
    if len(values) == 1:
        return f"{cursors.keys[0]} > {values[0]}"
    return f"({', '.join(cursors.keys)}) > ({', '.join(values)})"


def until(window: Window, cursors: Cursors) -> list[str]:
    if window.timestamp is not None:
        assert cursors.literal is not None
        return [f"{cursors.timestamp} <= {cursors.literal(window.timestamp)}"]
    return [f"{cursors.number} <= {window.number}"] if window.number is not None else []


def select_rows(
    columns: Sequence[str],
    source: str,
    window: Window,
    cursors: Cursors,
    most: int | None,
    suffix: str = "",
) -> str:
    """The statement that reads a window, at most so many rows of it."""
    limits = _where(after(window.start, cursors), until(window, cursors))
    parts = [f"SELECT {', '.join(columns)} FROM {source}", *limits]
    if ordered := order_by(cursors):
        parts.append(f"ORDER BY {', '.join(ordered)}")
    # Two limits would be an error: rows beyond `most` are left unread instead.
    if most is not None and not suffix:
        parts.append(f"LIMIT {most}")
    return " ".join((*parts, suffix)).strip()


def select_newest(source: str, start: Position, cursors: Cursors, before: int | None = None) -> str:
    """The statement that tells up to where there are rows now; of timestamps only those before `before`."""
    end = []
    newest = cursors.number
    if cursors.timestamp is not None:
        newest = cursors.timestamp
        if before is not None:
            assert cursors.literal is not None
            end = [f"{cursors.timestamp} < {cursors.literal(before)}"]
    return " ".join((f"SELECT MAX({newest}) FROM {source}", *_where(after(start, cursors), end)))


def _where(*conditions: Sequence[str]) -> list[str]:
    every = [one for some in conditions for one in some]
    return [f"WHERE {' AND '.join(every)}"] if every else []
