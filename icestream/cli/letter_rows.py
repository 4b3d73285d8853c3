"""Dead letters as rows: for `--where`, for the table of `icestream dlq show`, and as JSON."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icestream.cli.tables import NOTHING, Column
from icestream.cli.where import Kind

if TYPE_CHECKING:
    from icestream.jobs.letters import Letter

COLUMNS: Final[Mapping[str, Kind]] = {
    "topic": Kind.TEXT,
    "partition": Kind.NUMBER,
    "offset": Kind.NUMBER,
    "stage": Kind.TEXT,
    "class": Kind.TEXT,
    "exception": Kind.TEXT,
    "reason": Kind.TEXT,
    "time": Kind.TIME,
    "key": Kind.TEXT,
    "value": Kind.TEXT,
    "replayed": Kind.FLAG,
}
_CELL: Final = 60
"""How much of a long text a table shows."""
HEAD: Final = (
    Column("topic"),
    Column("partition", is_number=True),
    Column("offset", is_number=True),
    Column("stage"),
    Column("error"),
    Column("time"),
    Column("key"),
    Column("value"),
    Column("replayed"),
)


def hint_about(letters: Sequence[Letter]) -> str | None:
    """Why the first columns are empty, if they are."""
    silent = sum(letter.origin is None for letter in letters)
    if not silent:
        return None
    return (
        f"{silent:,} of them do not say where they are from, and why; later ones do with "
        "errors.deadletterqueue.context.headers.enable=true in the connector's config"
    )


def row_of(letter: Letter, replayed: bool) -> dict[str, Any]:
    """What `--where` sees."""
    origin = letter.origin
    return {
        "topic": origin.topic if origin else None,
        "partition": origin.number if origin else None,
        "offset": letter.origin_offset,
        "stage": letter.context.get("stage"),
        "class": letter.context.get("class.name"),
        "exception": letter.context.get("exception.class.name"),
        "reason": letter.context.get("exception.message"),
        "time": _moment(letter),
        "key": _text(letter.key),
        "value": _text(letter.value),
        "replayed": replayed,
    }


def _moment(letter: Letter) -> dt.datetime | None:
    """None also where producers took other units for milliseconds: no calendar goes that far."""
    if letter.timestamp_ms < 0:
        return None
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=letter.timestamp_ms)
    except OverflowError:
        return None


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def cells_of(letter: Letter, replayed: bool) -> list[str]:
    row = row_of(letter, replayed)
    row["time"] = f"{row['time']:%Y-%m-%d %H:%M:%S}" if row["time"] else None
    row["replayed"] = "yes" if replayed else "no"
    names = ("topic", "partition", "offset", "stage", "reason", "time", "key", "value", "replayed")
    return [NOTHING if row[name] is None else _shortened(str(row[name])) for name in names]


def _shortened(text: str) -> str:
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def document_of(letter: Letter, replayed: bool) -> dict[str, Any]:
    row = row_of(letter, replayed)
    row["time"] = row["time"].isoformat() if row["time"] else None
    bytes_of = {"key": letter.key, "value": letter.value}
    exact = {
        f"{name}_base64": base64.b64encode(content).decode()
        for name, content in bytes_of.items()
        if content is not None and row[name].encode() != content
    }
    queue = {"topic": letter.place.topic, "partition": letter.place.number, "offset": letter.offset}
    return {**row, **exact, "queue": queue}
