"""The partitioning of tables that are created, as Java's sink writes it: `day(time), bucket(id, 16), region`.

The text is checked with the config, by `settings`; the columns when the table is created, by `new_table`.
What is wrong is an error each time: a table that nobody partitioned could not be mended later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_TERM: Final = re.compile(r"(\w+)\s*\((.+)\)")
_MOST: Final = 2**31 - 1
_PERIODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("year", "years"), "year"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("hour", "hours"), "hour"),
}
_SIZED: Final = ("bucket", "truncate")
_SUFFIXES: Final = {"bucket": "_bucket", "truncate": "_trunc"}


@dataclass(frozen=True)
class Term:
    """One field of a partition spec."""

    column: str
    transform: str
    """`identity`, `year`, `month`, `day`, `hour`, `bucket` or `truncate`."""
    size: int | None = None

    @property
    def name(self) -> str:
        """Of the partition field, as Java's builder names it."""
        if self.transform == "identity":
            return self.column
        return self.column + _SUFFIXES.get(self.transform, f"_{self.transform}")


def terms(text: str) -> list[Term]:
    """The terms of a `partition-by`; ValueError with a reason."""
    found = [_term(part.strip()) for part in _parts(text)]
    names = [term.name for term in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"'{twice}' is there twice")
    return found


def _parts(text: str) -> list[str]:
    """Cut at the commas that are outside of parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise ValueError("its parentheses do not match")
    return parts


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        if not text or "(" in text or ")" in text:
            raise ValueError(f"'{text}' is neither a column nor a transform of one")
        return Term(text, "identity")
    transform, inside = found[1], found[2].strip()
    if transform in _PERIODS:
        return Term(inside, _PERIODS[transform])
    if transform not in _SIZED:
        known = ", ".join(sorted({*_PERIODS.values()} | {*_SIZED}))
        raise ValueError(f"'{transform}' is no transform; those are {known}, or the name of a column alone")
    column, comma, size = (part.strip() for part in inside.rpartition(","))
    if not comma or not column or not size.isascii() or not size.isdigit() or not 0 < int(size) <= _MOST:
        raise ValueError(f"'{text}' needs a column and a whole number above 0: {transform}(COLUMN, NUMBER)")
    return Term(column, transform, int(size))
