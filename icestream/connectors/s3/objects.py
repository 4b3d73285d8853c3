"""The objects of one topic partition in one task: records in, bytes under keys out. The writer's other half.

objects = TopicPartitionObjects(layout, partition)
taken = objects.take(groups, now_ms)      # for every chunk, the rows of this partition
for part in taken.parts: ...              # bytes to append to the upload of part.key
for part in objects.close(): ...          # at the end of the slice: all that is open is complete
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from icestream.api.batch import Failure, Left
from icestream.api.errors import FatalError
from icestream.api.offsets import Partition
from icestream.api.sink import TASK_PUT
from icestream.connectors.s3.compatibility import projected
from icestream.connectors.s3.formats.format import Encoder, Format, Rows
from icestream.connectors.s3.formats.views import header_view, key_view
from icestream.connectors.s3.layout import Layout
from icestream.connectors.s3.partitioners.partitioner import Encoded
from icestream.connectors.s3.rotation import Numbers, Rotation, RowFacts
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema
from icestream.records.values import Typed, Value


@dataclass(frozen=True, eq=False)
class ObjectPart:
    """Bytes to append to one object; the first part of a key begins it."""

    key: str
    data: bytes
    first_offset: int
    """Of the records of the object so far; so are the other numbers."""
    last_offset: int
    records: int
    is_last: bool = False
    """Whether the object is complete with this part."""
    is_value: bool = True
    """Not so for the objects of keys and headers, whose records are those of another object."""
    offsets: Indexes | None = None
    """Of all its records, in order; told with the last part."""


@dataclass(frozen=True)
class Taken:
    parts: Sequence[ObjectPart]
    """In order of their completion; those that are not complete come last."""
    failed: Mapping[int, Failure] = field(default_factory=dict)
    """By row of the chunk."""
    skipped: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Groups that have a place, and for their rows, in the order of the source: which group, which position
    in it, which folder."""

    groups: Sequence[Records]
    source: Indexes
    position: Indexes
    offsets: Indexes
    facts: RowFacts


_View = Callable[[Records], Typed]
"""What of its records an object shows."""


@dataclass(frozen=True)
class _File:
    key: str
    encoder: Encoder
    view: _View


@dataclass(eq=False)
class _Open:
    """An object under way, with those of its keys and headers. Of a tombstone there are only these."""

    files: Sequence[_File]
    first_offset: int
    last_offset: int = -1
    records: int = 0
    offsets: list[Indexes] = field(default_factory=list)

    def parts(self, data: Sequence[bytes], *, is_last: bool = False) -> Iterator[ObjectPart]:
        facts = (self.first_offset, self.last_offset, self.records)
        all_of_them = np.concatenate(self.offsets) if is_last else None
        for number, (file, mine) in enumerate(zip(self.files, data, strict=True)):
            yield ObjectPart(file.key, mine, *facts, is_last, number == 0, all_of_them)


_Columns = np.ndarray[tuple[int, int], np.dtype[np.int64]]
_ROW, _SOURCE, _POSITION, _OFFSET, _FOLDER, _SCHEMA, _FITS, _TIME = range(8)
_WIDTH: Final = 8

_NO_KEY: Final = Failure("Key cannot be null for SinkRecord, because store.kafka.keys is on")
_NO_HEADERS: Final = Failure("Headers cannot be null for SinkRecord, because store.kafka.headers is on")

_Schema = tuple[ConnectSchema | None, bool]
"""Of a value; and whether it is a tombstone."""


class TopicPartitionObjects:
    def __init__(self, layout: Layout, partition: Partition) -> None:
        self._layout = layout
        self._partition = partition
        self._folders = Numbers()
        self._schemas = Numbers()
        self._refusals: dict[tuple[str, str], str | None] = {}
        self._rotation = Rotation(layout.rules, self._is_change)
        self._open: dict[tuple[int, int], _Open] = {}
        """By round and folder, in order of opening."""

    def take(self, groups: Sequence[Records], now_ms: int) -> Taken:
        """Groups of one chunk with the rows of this partition alone."""
        failed: dict[int, Failure] = {}
        skipped: list[int] = []
        whole = [part for group in groups for part in _without_mixed_nulls(group)]
        kept = [group for group in whole if self._is_kept(group, failed, skipped)]
        rows = self._gathered(kept, now_ms, failed)
        if rows is None:
            return Taken([], _in_task_put(failed), skipped)
        under_way = self._rotation.round
        rounds = self._rotation.rounds(rows.facts)
        parts = [part for part in self._written(rows, rounds, under_way) if part.data or part.is_last]
        return Taken(parts, _in_task_put(failed), skipped)

    def left(self) -> Left | None:
        """What is open, if that is to be left: up to where all is complete, and how many records are not."""
        if not self._open:
            return None
        under_way = self._open.values()
        return Left(min(one.first_offset for one in under_way), sum(one.records for one in under_way))

    def close(self) -> Iterator[ObjectPart]:
        yield from self._completed(None)

    # -- what is written at all --

    def _is_kept(self, group: Records, failed: dict[int, Failure], skipped: list[int]) -> bool:
        if not _is_tombstone(group.value) or self._layout.on_null == "write":
            return True
        if self._layout.on_null == "fail":
            raise FatalError(
                f"a record of {self._partition} has no value (offset {_first_offset(group)}); set "
                "'behavior.on.null.values' to 'ignore' to pass over such records, or to 'write' to keep them"
            )
        rows = group.rows.tolist()
        if self._layout.reports_nulls:
            why = Failure("Skipping null value record.")
            failed.update(dict.fromkeys(rows, why))
        else:
            skipped += rows
        return False

    def _gathered(
        self, groups: Sequence[Records], now_ms: int, failed: dict[int, Failure]
    ) -> _Gathered | None:
        """All rows that have a folder, in the order of the source."""
        found = [self._placed(number, group, now_ms, failed) for number, group in enumerate(groups)]
        if not any(map(len, found)):
            return None
        columns = np.concatenate(found)
        columns = columns[np.argsort(columns[:, _ROW], kind="stable")]
        facts = RowFacts(
            columns[:, _FOLDER],
            columns[:, _SCHEMA],
            columns[:, _FITS].astype(np.bool_),
            columns[:, _TIME] if self._layout.partitioner.by_time else None,
        )
        return _Gathered(groups, columns[:, _SOURCE], columns[:, _POSITION], columns[:, _OFFSET], facts)

    def _placed(self, number: int, group: Records, now_ms: int, failed: dict[int, Failure]) -> _Columns:
        """A row for every record of a group that has a folder."""
        encoded = self._encoded(group, now_ms)
        codes = [self._folders.of((group.topic, path)) for path in encoded.paths]
        folders = np.array(codes, np.int64)[encoded.codes]
        why_not = dict(encoded.failed)
        for code in codes:
            if (refusal := self._refusal(code)) is not None:
                why_not |= dict.fromkeys(np.flatnonzero(folders == code).tolist(), Failure(refusal))
        unfit = self._unfit(group)
        failed.update((int(group.rows[at]), why) for at, why in (unfit | why_not).items())
        columns = np.zeros((len(group), _WIDTH), np.int64)
        assert group.offsets is not None
        columns[:, _ROW], columns[:, _OFFSET] = group.rows, group.offsets
        columns[:, _SOURCE], columns[:, _POSITION] = number, np.arange(len(group))
        columns[:, _FOLDER], columns[:, _SCHEMA] = folders, self._schemas.of(_schema(group.value))
        columns[:, _FITS] = 1
        columns[list(unfit), _FITS] = 0
        if encoded.times is not None:
            columns[:, _TIME] = encoded.times
        return np.delete(columns, list(why_not), axis=0) if why_not else columns

    def _encoded(self, group: Records, now_ms: int) -> Encoded:
        found = self._layout.partitioner.encoded(group, self._partition.number, now_ms)
        if not _is_tombstone(group.value):
            return found
        # Its place is known; its time counts all the same.
        failed = found.failed if self._layout.partitioner.by_time else {}
        return Encoded([self._layout.tombstone_folder], np.zeros(len(group), np.int64), found.times, failed)

    def _refusal(self, code: int) -> str | None:
        topic, path = self._folders.things[code]
        if (topic, path) not in self._refusals:
            names = self._layout.names
            ending = self._layout.values.extension
            self._refusals[topic, path] = names.refusal(names.folder(topic, path), topic, ending)
        return self._refusals[topic, path]

    def _unfit(self, group: Records) -> dict[int, Failure]:
        """Records that cannot be written, by position: one that has no place in one of its objects is in
        none."""
        everyone = range(len(group))
        schema, is_tombstone = _schema(group.value)
        if self._layout.compatibility.needs_versions and schema is not None and schema.version is None:
            return dict.fromkeys(
                everyone, Failure(f"Schema version required for {self._layout.compatibility} compatibility")
            )
        found: dict[int, Failure] = {}
        if self._layout.headers is not None:
            if not group.headers:
                return dict.fromkeys(everyone, _NO_HEADERS)
            found |= self._layout.headers.unfit(header_view(group, self._layout.headers))
        if self._layout.keys is not None:
            if group.key is None:
                return dict.fromkeys(everyone, _NO_KEY)
            found |= self._layout.keys.unfit(key_view(group.key, self._layout.keys))
            if isinstance(group.key, Column) and group.key.values.null_count:
                found |= dict.fromkeys(np.flatnonzero(group.key.nulls).tolist(), _NO_KEY)
        if not is_tombstone and group.value is not None:
            found |= self._layout.values.unfit(group.value)
        return found

    def _is_change(self, began: int, schema: int) -> bool:
        (first, was_tombstone), (second, is_tombstone) = (
            self._schemas.things[began],
            self._schemas.things[schema],
        )
        return was_tombstone != is_tombstone or self._layout.compatibility.is_change(first, second)

    # -- writing --

    def _written(self, rows: _Gathered, rounds: Indexes, first: int) -> Iterator[ObjectPart]:
        for number in range(first, self._rotation.round + 1):
            low, high = np.searchsorted(rounds, [number, number + 1]).tolist()
            mine = np.arange(low, high)[rows.facts.fits[low:high]]
            for part in _by_folder(mine, rows.facts.folders[mine]):
                yield from self._append(number, int(rows.facts.folders[part[0]]), rows, part)
            if number < self._rotation.round:
                yield from self._completed(number)

    def _append(self, number: int, folder: int, rows: _Gathered, mine: Indexes) -> Iterator[ObjectPart]:
        place = (number, folder)
        if place not in self._open:
            self._open[place] = self._opened(folder, rows, int(mine[0]))
        under_way = self._open[place]
        under_way.last_offset = int(rows.offsets[mine[-1]])
        under_way.records += len(mine)
        under_way.offsets.append(rows.offsets[mine])
        data = [one.encoder.write(_rows_of(rows, mine, one.view)) for one in under_way.files]
        yield from under_way.parts(data)

    def _opened(self, folder: int, rows: _Gathered, first: int) -> _Open:
        topic, path = self._folders.things[folder]
        group = rows.groups[int(rows.source[first])]
        names, offset = self._layout.names, int(rows.offsets[first])
        files = []
        for form, ending, view in self._views(group):
            at = names.key(names.folder(topic, path), topic, self._partition, offset, ending + form.extension)
            value = view(group)
            schema = value.schema if isinstance(value, Column) else None
            files.append(_File(at, form.encoder(schema), _brought_into(schema, view)))
        return _Open(files, offset)

    def _views(self, group: Records) -> Iterator[tuple[Format, str, _View]]:
        """The formats of the objects that a record goes to, what their names end with, and what they show."""
        layout = self._layout
        if not _is_tombstone(group.value):
            yield layout.values, "", _value
        if (keys := layout.keys) is not None:
            yield keys, ".keys", lambda one: key_view(_present(one.key), keys)
        if (headers := layout.headers) is not None:
            yield headers, ".headers", lambda one: header_view(one, headers)

    def _completed(self, number: int | None) -> Iterator[ObjectPart]:
        """The ends of the objects of a round; of all, without one."""
        ended = [place for place in self._open if number is None or place[0] == number]
        for place in ended:
            one = self._open.pop(place)
            yield from one.parts([file.encoder.close() for file in one.files], is_last=True)


def _by_folder(rows: Indexes, folders: Indexes) -> list[Indexes]:
    """The rows of each folder, in the order of their first ones."""
    order = np.argsort(folders, kind="stable")
    bounds = np.flatnonzero(np.diff(folders[order])) + 1
    parts = np.split(rows[order], bounds) if len(rows) else []
    return sorted(parts, key=lambda part: int(part[0]))


def _in_task_put(failed: Mapping[int, Failure]) -> dict[int, Failure]:
    return {row: why if why.stage else replace(why, stage=TASK_PUT) for row, why in failed.items()}


def _is_null(value: Typed) -> bool:
    return isinstance(value, Column) and bool(len(value)) and value.values.null_count == len(value)


def _without_mixed_nulls(group: Records) -> Iterator[Records]:
    """Records with values, and those without."""
    value = group.value
    if not isinstance(value, Column) or value.values.null_count in (0, len(value)):
        yield group
        return
    yield group.take(np.flatnonzero(~value.nulls))
    yield group.take(np.flatnonzero(value.nulls))


def _first_offset(group: Records) -> int | str:
    return "unknown" if group.offsets is None else int(group.offsets[0])


def _schema(value: Value) -> _Schema:
    if value is None or _is_tombstone(value):
        return None, True
    return (value.schema if isinstance(value, Column) else None), False


def _is_tombstone(value: Value) -> bool:
    return value is None or _is_null(value)


def _value(records: Records) -> Typed:
    return _present(records.value)


def _present(value: Value) -> Typed:
    assert value is not None, "records without it are unfit"
    return value


def _brought_into(schema: ConnectSchema | None, view: _View) -> _View:
    """A view whose values have the schema that the object began with."""
    if schema is None:
        return view

    def shown(records: Records) -> Typed:
        value = view(records)
        return projected(value, schema) if isinstance(value, Column) else value

    return shown


def _rows_of(rows: _Gathered, mine: Indexes, view: _View) -> Rows:
    """The values of some rows: taken from each group, then brought into the order of the source."""
    sources, positions = rows.source[mine], rows.position[mine]
    numbers = np.unique(sources).tolist()
    if len(numbers) == 1:
        return Rows([view(rows.groups[numbers[0]].take(positions))])
    order = np.argsort(np.argsort(sources, kind="stable"), kind="stable")
    return Rows([view(rows.groups[number].take(positions[sources == number])) for number in numbers], order)
