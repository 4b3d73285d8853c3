"""Plain text tables, and colours where a terminal wants them. Used by the commands that talk to a worker."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from icestream.cli.lines import one_line

NOTHING: Final = "-"
STATE_STYLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "RUNNING": {"fg": "green"},
    "FAILED": {"fg": "red", "bold": True},
    "PAUSED": {"fg": "yellow"},
    "STOPPED": {"fg": "yellow"},
}
_GAP: Final = "  "


@dataclass(frozen=True)
class Column:
    """A column's title; numbers stand to the right; `styles` has the colours of some of its values."""

    title: str
    is_number: bool = False
    styles: Mapping[str, Mapping[str, Any]] | None = None


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[str]:
    """The lines of a table, title first; with a width, what does not fit on a line is cut off."""
    titles = [column.title for column in columns]
    cells = [titles, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[place]) for row in cells) for place in range(len(columns))]
    lines = []
    for number, row in enumerate(cells):
        left = width if width is not None else sum(widths) + len(_GAP) * len(widths)
        parts = []
        for column, cell, wanted in zip(columns, row, widths, strict=True):
            part = _cropped(_padded(cell, wanted, column.is_number) + _GAP, left)
            left -= _width(part)
            parts.append(_styled(part, {"bold": True} if number == 0 else (column.styles or {}).get(cell)))
        lines.append("".join(parts).rstrip())
    return lines


def _padded(cell: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if is_number else cell + blanks


def _cropped(text: str, width: int) -> str:
    while _width(text) > width:
        text = text[:-1]
    return text


def _styled(part: str, style: Mapping[str, Any] | None) -> str:
    text = part.rstrip()
    return click.style(text, **style) + part[len(text) :] if style and text else part


def _width(text: str) -> int:
    """How many places a terminal needs: two for a wide character, none for an accent on the one before."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
