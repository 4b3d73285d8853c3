"""`TimeBasedPartitioner` and its daily and hourly forms: a folder for every stretch of time. Called by
`objects`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.connectors.s3.partitioners.by_field import PARTITION_EXCEPTION
from icestream.connectors.s3.partitioners.iso_times import milliseconds
from icestream.connectors.s3.partitioners.joda import JodaPattern
from icestream.connectors.s3.partitioners.partitioner import Encoded
from icestream.connectors.s3.partitioners.record_fields import FoundValues, NoSuchField, values_at
from icestream.connectors.s3.zones import Zone
from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.records.schema import TIMESTAMP

Extractor = Literal["Wallclock", "Record", "RecordField"]
_NO_TIME: Final = Failure(
    "Error encoding partition: unable to determine the time of the record by timestamp.extractor=Record; it "
    "has no timestamp",
    PARTITION_EXCEPTION,
)
_FIRST, _LAST = -(2**55), 2**55
"""Milliseconds of moments that a folder is made for: a million years around now."""
_TOO_FAR: Final = Failure(
    "Error encoding partition: the time of the record is more than a million years away; is "
    "timestamp.field in milliseconds?",
    PARTITION_EXCEPTION,
)


@dataclass(frozen=True)
class TimeBasedPartitioner:
    pattern: JodaPattern
    duration_ms: int
    zone: Zone
    extractor: Extractor = "Wallclock"
    field: str = "timestamp"

    @property
    def by_time(self) -> bool:
        return True

    def encoded(self, records: Records, partition: int, now_ms: int) -> Encoded:
        failed: dict[int, Failure] = {}
        times = self._times(records, now_ms, failed)
        far = np.flatnonzero((times < _FIRST) | (times > _LAST))
        for at in far.tolist():
            failed.setdefault(at, _TOO_FAR)
        times[far] = 0
        starts, codes = np.unique(self._starts(times), return_inverse=True)
        paths = [self.pattern.printed(start, self.zone) for start in starts.tolist()]
        return Encoded(paths, codes.astype(np.int64), times, failed)

    def _starts(self, times: Indexes) -> Indexes:
        """The moments at which their stretches begin, by the clocks of the zone."""
        local = times + self.zone.offsets(times)
        # Java's division: towards 1970, also of times before it.
        floored = np.sign(local) * (np.abs(local) // self.duration_ms) * self.duration_ms
        starts, codes = np.unique(floored, return_inverse=True)
        found: Indexes = self.zone.moments(starts)[codes]
        return found

    def _times(self, records: Records, now_ms: int, failed: dict[int, Failure]) -> Indexes:
        length = len(records)
        if self.extractor == "Wallclock":
            return np.full(length, now_ms, np.int64)
        if self.extractor == "Record":
            for at in np.flatnonzero(records.timestamps.is_null().to_numpy(zero_copy_only=False)).tolist():
                failed[at] = _NO_TIME
            found: Indexes = records.timestamps.fill_null(0).to_numpy(zero_copy_only=False).copy()
            return found
        return self._field_times(records, failed)

    def _field_times(self, records: Records, failed: dict[int, Failure]) -> Indexes:
        times = np.zeros(len(records), np.int64)
        try:
            for found in values_at(records.value, self.field.split("."), len(records)):
                mine, wrong = _read(found, self.field)
                times[found.positions] = mine
                failed.update(
                    (
                        int(found.positions[at]),
                        Failure(f"Error encoding partition: {why}", PARTITION_EXCEPTION),
                    )
                    for at, why in wrong.items()
                )
        except NoSuchField as error:
            why = Failure(f"Error encoding partition: {error}", PARTITION_EXCEPTION)
            failed.update(dict.fromkeys(range(len(records)), why))
        return times


def _read(found: FoundValues, name: str) -> tuple[Indexes, dict[int, str]]:
    """Milliseconds of values of one type, and what is wrong with those that are no times."""
    value, length = found.value, len(found.positions)
    read = _reader(value) if isinstance(value, Column) else None
    if read is None or not isinstance(value, Column):
        why = f"the type {java_class(value)} of the field '{name}' is none that tells a time"
        return np.zeros(length, np.int64), dict.fromkeys(range(length), why)
    times, wrong = read(value.values)
    for at in np.flatnonzero(value.nulls).tolist():
        wrong[at] = f"the field '{name}' has no value"
    return times, wrong


def _reader(column: Column) -> Callable[[pa.Array], tuple[Indexes, dict[int, str]]] | None:
    kind, schema = column.values.type, column.schema
    if pt.is_string(kind):
        return milliseconds
    if schema is not None:
        is_time = schema.name == TIMESTAMP or pt.is_int32(kind) or pt.is_int64(kind)
        return _numbers if is_time else None
    is_time = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_timestamp(kind) or pt.is_null(kind)
    return _numbers if is_time else None


def _numbers(values: pa.Array) -> tuple[Indexes, dict[int, str]]:
    if pt.is_floating(values.type):
        # As Java's longValue: towards zero, and at most the largest.
        floats = np.nan_to_num(values.fill_null(0).to_numpy(zero_copy_only=False), posinf=_LAST * 2.0)
        return np.clip(floats, -(2.0**62), 2.0**62).astype(np.int64), {}
    found = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.array(found, np.int64), {}
