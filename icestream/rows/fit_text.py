"""JSON text at some paths into the types of some columns, in as few native passes as the paths allow.

For records whose other fields transforms have changed; called by `fit_records`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.jsontext.table_rows import JsonDecoder, Refused
from icestream.records.json_source import JsonSource, Path
from icestream.records.payloads import Payloads
from icestream.records.rows import Indexes
from icestream.records.values import Text

_WRAPPER = "value"


@dataclass(frozen=True)
class Wanted:
    """A column that is to come from text."""

    text: Text
    type: pa.DataType


@dataclass
class TextFitter:
    """Remembers the native decoders of the layouts that it has met."""

    _decoders: dict[object, JsonDecoder] = field(default_factory=dict)

    def decode(self, wanted: Sequence[Wanted], refused: dict[int, Refused]) -> list[pa.Array]:
        """A column for each, null where a row is refused; adds to `refused`, by row."""
        found: dict[int, pa.Array] = {}
        for source, layout, rows in _passes(wanted):
            found.update(self._run(source, layout, rows, refused))
        return [found[position] for position in range(len(wanted))]

    def _run(
        self, source: JsonSource, layout: _Layout, rows: Indexes | None, refused: dict[int, Refused]
    ) -> Iterator[tuple[int, pa.Array]]:
        payloads = source.payloads if rows is None else source.payloads.take(rows)
        if () in layout.types:
            payloads, layout = _wrapped(payloads), layout.below(_WRAPPER)
        decoded = self._decoder(layout).decode(payloads)
        table = decoded.rows
        if decoded.rejected:
            refused.update({one.at: one for one in decoded.rejected})
            table = table.take(_spread(decoded.index, len(payloads)))
        for path, positions in layout.positions.items():
            column = _at(table, path)
            for position in positions:
                yield position, column

    def _decoder(self, layout: _Layout) -> JsonDecoder:
        key = tuple(layout.types.items())
        if key not in self._decoders:
            self._decoders[key] = JsonDecoder(pa.schema(_fields(layout.types)))
        return self._decoders[key]


@dataclass
class _Layout:
    """What one pass decodes: paths none of which is inside another."""

    types: dict[Path, pa.DataType] = field(default_factory=dict)
    positions: dict[Path, list[int]] = field(default_factory=dict)

    def takes(self, path: Path, kind: pa.DataType) -> bool:
        if path in self.types:
            return bool(self.types[path] == kind)
        return not any(path[: len(other)] == other or other[: len(path)] == path for other in self.types)

    def add(self, path: Path, kind: pa.DataType, position: int) -> None:
        self.types[path] = kind
        self.positions.setdefault(path, []).append(position)

    def below(self, name: str) -> _Layout:
        return _Layout(
            {(name, *path): kind for path, kind in self.types.items()},
            {(name, *path): positions for path, positions in self.positions.items()},
        )


def _passes(wanted: Sequence[Wanted]) -> list[tuple[JsonSource, _Layout, Indexes | None]]:
    passes: list[tuple[JsonSource, _Layout, Indexes | None]] = []
    for position, one in enumerate(wanted):
        text = one.text
        for source, layout, _ in passes:
            if source is text.source and layout.takes(text.path, one.type):
                layout.add(text.path, one.type, position)
                break
        else:
            layout = _Layout()
            layout.add(text.path, one.type, position)
            passes.append((text.source, layout, text.rows))
    return passes


def _fields(types: Mapping[Path, pa.DataType]) -> list[pa.Field]:
    """The tree of the paths as nested structs."""
    inner: dict[str, dict[Path, pa.DataType]] = {}
    for path, kind in types.items():
        inner.setdefault(path[0], {})[path[1:]] = kind
    return [
        pa.field(name, below[()] if () in below else pa.struct(_fields(below)))
        for name, below in inner.items()
    ]


def _wrapped(payloads: Payloads) -> Payloads:
    return Payloads.of([b'{"%s":%s}' % (_WRAPPER.encode(), payload) for payload in payloads])


def _spread(index: Indexes, length: int) -> pa.Array:
    """For each row its place among the decoded ones; null if it is not among them."""
    places = np.zeros(length, np.int64)
    gone = np.ones(length, np.bool_)
    places[index], gone[index] = np.arange(len(index)), False
    return pa.array(places, mask=gone)


def _at(table: pa.Table, path: Path) -> pa.Array:
    column: Any = table.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column
