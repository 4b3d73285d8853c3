"""The value (or key) of alike records: a column, the fields of a schemaless map, a schemaless list, or
nothing.

Transforms edit `Fields` by name; what none of them touches stays in the JSON text that it came in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, missing
from icestream.records.json_source import ABSENT, JsonSource, Learned, Path
from icestream.records.rows import Flags, Indexes


@dataclass(frozen=True, eq=False)
class Text:
    """JSON at a path of each value, not looked at yet: its type may differ from row to row."""

    source: JsonSource
    path: Path = ()
    rows: Indexes | None = None
    """Positions in the source; None: all of it."""

    def __len__(self) -> int:
        return len(self.source) if self.rows is None else len(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Text):
            return NotImplemented
        if self.rows is None or other.rows is None:
            same_rows = self.rows is other.rows
        else:
            same_rows = np.array_equal(self.rows, other.rows)
        return self.source is other.source and self.path == other.path and same_rows

    def child(self, name: str) -> Text:
        return replace(self, path=(*self.path, name))

    def take(self, rows: Indexes) -> Text:
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def children(self, names: Sequence[str]) -> dict[str, Text]:
        """Several at once. Names that come from data are not learned: there is no end of them."""
        whole = replace(self, path=())
        values = self.source.values
        if self.rows is not None:
            values = [values[row] for row in self.rows.tolist()]
        learned = Learned({(*self.path, name): None for name in names})
        source = JsonSource.projected(values, learned, whole.objects())
        return {name: Text(source, (*self.path, name)) for name in names}

    def objects(self) -> list[Any]:
        """As Python's own values; ABSENT where there is no such key."""
        found = self.source.objects(self.path)
        return found if self.rows is None else [found[row] for row in self.rows.tolist()]


@dataclass(frozen=True)
class Fields:
    """A schemaless map in every row: some keys by name, all others as they are in `rest`."""

    named: Mapping[str, Node | None]
    """None: the key was removed."""
    rest: Text | None
    """JSON objects; None: there are no other keys."""
    length: int

    def __len__(self) -> int:
        return self.length

    def get(self, name: str) -> Node | None:
        """None: no row has the key."""
        if name in self.named:
            return self.named[name]
        return None if self.rest is None else self.rest.child(name)

    def put(self, changes: Mapping[str, Node | None]) -> Fields:
        return replace(self, named={**self.named, **changes})

    def take(self, rows: Indexes) -> Fields:
        named = {name: None if node is None else node.take(rows) for name, node in self.named.items()}
        return Fields(named, None if self.rest is None else self.rest.take(rows), len(rows))

    def expanded(self, most: int) -> Fields | None:
        """With every key by name and no rest; None if there are more keys than that. Decodes all of the text:
        for those who need all keys."""
        held = {name: node for name, node in self.named.items() if node is not None}
        if self.rest is None:
            return replace(self, named=held) if len(held) <= most else None
        keys: dict[str, Any] = {}
        for value in self.rest.objects():
            keys.update(value)
            if len(keys) > most:
                return None
        texts = self.rest.children([name for name in keys if name not in self.named])
        return Fields({**texts, **held}, None, self.length) if len(texts) + len(held) <= most else None


@dataclass(frozen=True)
class Listing:
    """A schemaless list in every row, still in its text."""

    text: Text

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: Indexes) -> Listing:
        return Listing(self.text.take(rows))


Typed = Column | Fields | Listing
"""Values of one Java type (nulls among them in a column only)."""
Node = Typed | Text
Value = Typed | None
"""None: null without a schema in every row."""


@dataclass(frozen=True, eq=False)
class Part:
    """Those rows whose values have one Java type."""

    rows: Indexes | None
    """Positions in what was parted; None: all of it, as they are."""
    value: Typed


def object_fields(source: JsonSource) -> Fields:
    """A chunk of JSON objects as a value."""
    return Fields({}, Text(source), len(source))


def typed(node: Node | None, length: int) -> list[Part]:
    """A node by Java types; almost always one part."""
    if node is None:
        return [Part(None, missing(length))]
    if not isinstance(node, Text):
        return [Part(None, node)]
    objects = node.objects()
    kinds = set(map(type, objects))
    if len(kinds - _NOTHING) <= 1 and not kinds & _NESTED:
        return [Part(None, _scalars(objects, kinds))]
    codes = np.fromiter((_CODES[type(value)] for value in objects), np.int8, len(objects))
    parts = []
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        parts.append(Part(None if len(rows) == len(objects) else rows, _of_code(node, objects, code, rows)))
    return parts


_SCALARS: Final[Mapping[type, pa.DataType]] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}
_NOTHING: Final[set[type]] = {type(None), type(ABSENT)}
_NESTED: Final[set[type]] = {dict, list}
_OBJECT, _LIST = 1, 2
_CODES: Final[Mapping[type, int]] = {
    type(None): 0,
    type(ABSENT): 0,
    dict: _OBJECT,
    list: _LIST,
    str: 3,
    int: 4,
    float: 5,
    bool: 6,
}


def _of_code(node: Text, objects: Sequence[Any], code: int, rows: Indexes) -> Typed:
    if code == _OBJECT:
        return Fields({}, node.take(rows), len(rows))
    if code == _LIST:
        return Listing(node.take(rows))
    mine = [objects[row] for row in rows.tolist()]
    return _scalars(mine, set(map(type, mine)))


def _scalars(objects: list[Any], kinds: set[type]) -> Column:
    absent: Flags | None = None
    if type(ABSENT) in kinds:
        absent = np.fromiter((value is ABSENT for value in objects), np.bool_, len(objects))
        objects = [None if value is ABSENT else value for value in objects]
    (kind,) = kinds - _NOTHING or {type(None)}
    if kind is int:
        return Column(_longs(objects), None, absent)
    return Column(pa.array(objects, _SCALARS.get(kind, pa.null())), None, absent)


def _longs(objects: list[Any]) -> pa.Array:
    try:
        return pa.array(objects, pa.int64())
    except (OverflowError, pa.ArrowInvalid):  # Java's longValue keeps the low 64 bits
        return pa.array(
            [None if value is None else (value + 2**63) % 2**64 - 2**63 for value in objects], pa.int64()
        )


def positions(part: Part, length: int) -> Iterator[int]:
    return iter(range(length) if part.rows is None else part.rows.tolist())
