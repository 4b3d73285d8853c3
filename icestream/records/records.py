"""Records that are alike, what a transform makes of them, and who may do so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure as Failure
from icestream.records.rows import Flags, Indexes
from icestream.records.values import Typed, Value


@dataclass(frozen=True)
class Header:
    """One header that every record of a group has. Headers keep their order; names may repeat."""

    name: str
    values: Typed
    """Raw headers: bytes without a schema, as no transform reads them."""
    raw: bool = False

    def take(self, rows: Indexes) -> Header:
        return replace(self, values=self.values.take(rows))


@dataclass(frozen=True, eq=False)
class Records:
    """Some records of a chunk, alike: same topic, same Java type of key and of value, same
    header names.

    Key and value are null in all rows or in none (`chain` sees to it), so a transform never looks for
    single nulls at the top.
    """

    rows: Indexes
    """Which rows of the chunk these are."""
    topic: str
    partitions: Indexes | None
    """The partition number of each; None for records that have none yet."""
    timestamps: pa.Array
    """int64, milliseconds since 1970."""
    key: Value
    value: Value
    headers: tuple[Header, ...] = ()
    offsets: Indexes | None = None
    """Where each is from in Kafka; None for records of a source."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Indexes) -> Records:
        """Those at these positions (of this group, not of the chunk)."""
        if len(rows) == len(self.rows) and np.array_equal(rows, np.arange(len(rows))):
            return self
        return replace(
            self,
            rows=self.rows[rows],
            timestamps=self.timestamps.take(pa.array(rows)),
            key=None if self.key is None else self.key.take(rows),
            value=None if self.value is None else self.value.take(rows),
            headers=tuple(header.take(rows) for header in self.headers),
            partitions=None if self.partitions is None else self.partitions[rows],
            offsets=None if self.offsets is None else self.offsets[rows],
        )


@dataclass(frozen=True)
class Applied:
    """What became of a group. Rows are those of the chunk; none may vanish: each is in `records`, failed or
    dropped."""

    records: Sequence[Records]
    failed: Mapping[int, Failure] = field(default_factory=dict)
    dropped: Sequence[int] = ()


class Transform(Protocol):
    def apply(self, records: Records) -> Applied: ...


class Predicate(Protocol):
    def test(self, records: Records) -> Flags: ...


@dataclass(frozen=True, eq=False)
class Converted:
    """The keys or values of a chunk: groups of rows with their value, and the rows that do not convert."""

    groups: Sequence[tuple[Indexes | None, Value]]
    """Positions in what was converted; None: all of it."""
    failed: Mapping[int, Failure] = field(default_factory=dict)


class ConversionError(Exception):
    """Values that a converter cannot write, by position; the others of the group can be written without
    them."""

    def __init__(self, failed: Mapping[int, Failure]) -> None:
        super().__init__(next(iter(failed.values())).reason)
        self.failed = dict(failed)


class Converter(Protocol):
    """One of a connector's converters, made for the key or for the value, and kept as long as its task
    lives."""

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted: ...

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        """The bytes of a group's values; raises ConversionError if one cannot be written."""
