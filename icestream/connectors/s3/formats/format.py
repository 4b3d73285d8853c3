"""What a format is: `objects` opens an encoder of it for every object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icestream.api.batch import Failure
from icestream.records.column import Column
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema
from icestream.records.values import Typed


@dataclass(frozen=True, eq=False)
class Rows:
    """Values for one object: those of some groups one after the other, brought into order."""

    values: Sequence[Typed]
    order: Indexes | None = None
    """Positions in all of them together; None: as they are."""

    def __len__(self) -> int:
        return sum(map(len, self.values)) if self.order is None else len(self.order)

    def array(self, kind: pa.DataType) -> pa.Array:
        """Those of columns of this type, as one."""
        arrays = [one.values for one in self.values if isinstance(one, Column)]
        whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays([one.cast(kind) for one in arrays])
        return whole if self.order is None else whole.take(pa.array(self.order))


class Encoder(Protocol):
    """Makes the bytes of one object."""

    def write(self, rows: Rows) -> bytes:
        """What there is of the object's bytes by now; the rest may come later."""

    def close(self) -> bytes:
        """The rest."""


class Format(Protocol):
    """Plain data: it crosses process boundaries."""

    @property
    def extension(self) -> str:
        """Of the names of objects, with its dot."""

    def unfit(self, value: Typed) -> Mapping[int, Failure]:
        """Which values cannot be written in this format, by position, and why."""

    def encoder(self, schema: ConnectSchema | None) -> Encoder:
        """For one object, whose records have this schema."""
