"""From the values of a source to the records that its job sends: transforms first, then converters.

Called by `source_job` for each slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icestream.api.config import Config
from icestream.api.source import SourceSlice
from icestream.converters.catalog import converter_from
from icestream.kafka.bulk_producer import Outgoing
from icestream.records.column import Column
from icestream.records.records import ConversionError, Converter, Header, Records
from icestream.records.schema import STRING
from icestream.records.values import Value
from icestream.transforms.build import chain_from
from icestream.transforms.chain import Chain

_Headers = tuple[tuple[str, bytes | None], ...]
_KEY, _VALUE, _HEADER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"
_TRANSFORMATION: Final = "TRANSFORMATION"


@dataclass(frozen=True)
class LeftOut:
    """Why a record is not sent."""

    stage: str
    reason: str


@dataclass
class Ready:
    """What becomes of a slice; records that a transform drops are in neither."""

    outgoing: list[Outgoing] = field(default_factory=list)
    left_out: dict[int, LeftOut] = field(default_factory=dict)


@dataclass
class _Written:
    """The records of one group, as bytes."""

    rows: Sequence[int]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Sequence[_Headers] | None


@dataclass(frozen=True)
class SourcePath:
    keys: Converter
    values: Converter
    headers: Converter
    chain: Chain

    def ready(self, found: SourceSlice, now_ms: int) -> Ready:
        outcome = self.chain.run([_records(found, now_ms)])
        ready = Ready()
        for row, failed in outcome.failed.items():
            ready.left_out[row] = LeftOut(_TRANSFORMATION, failed.failure.reason)
        by_topic: dict[str, list[_Written]] = {}
        for records in outcome.records:
            written = self._written(records, ready.left_out)
            if written is not None:
                by_topic.setdefault(records.topic, []).append(written)
        ready.outgoing = [_in_order(topic, parts) for topic, parts in by_topic.items()]
        return ready

    def _written(self, records: Records, left_out: dict[int, LeftOut]) -> _Written | None:
        """The bytes of those records that can be written."""
        failed: dict[int, LeftOut] = {}
        keys = _tried(self.keys, _KEY, records.topic, records.key, len(records), failed)
        values = _tried(self.values, _VALUE, records.topic, records.value, len(records), failed)
        headers = [
            _tried(self.headers, _HEADER, records.topic, one.values, len(records), failed)
            for one in records.headers
        ]
        if not failed:
            return _Written(
                records.rows.tolist(),
                values,
                None if records.key is None else keys,
                _side_by_side(records.headers, headers),
            )
        left_out.update({int(records.rows[position]): why for position, why in failed.items()})
        keep = np.setdiff1d(np.arange(len(records)), np.fromiter(failed, np.int64, len(failed)))
        return self._written(records.take(keep), left_out) if len(keep) else None


def source_path_from(config: Config) -> SourcePath:
    """Raises ConfigError."""
    key, value, header = (converter_from(config, kind) for kind in ("key", "value", "header"))
    return SourcePath(key, value, header, chain_from(config))


def _records(found: SourceSlice, now_ms: int) -> Records:
    return Records(
        rows=np.arange(len(found)),
        topic=found.topic,
        partitions=None,
        timestamps=pa.array(np.full(len(found), now_ms, np.int64)),
        key=None,
        value=Column(found.values, STRING),
    )


def _tried(
    converter: Converter, stage: str, topic: str, value: Value, length: int, failed: dict[int, LeftOut]
) -> Sequence[bytes | None]:
    try:
        return converter.from_connect(topic, value, length)
    except ConversionError as error:
        failed.update({position: LeftOut(stage, why.reason) for position, why in error.failed.items()})
        return ()


def _side_by_side(
    headers: Sequence[Header], written: Sequence[Sequence[bytes | None]]
) -> Sequence[_Headers] | None:
    if not headers:
        return None
    names = [header.name for header in headers]
    return [tuple(zip(names, row, strict=True)) for row in zip(*written, strict=True)]


def _in_order(topic: str, parts: Sequence[_Written]) -> Outgoing:
    """Groups of records put back into the order that their rows have."""
    if len(parts) == 1:
        return Outgoing(topic, parts[0].values, parts[0].keys, parts[0].headers)
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable").tolist()

    def together(columns: Sequence[Sequence[Any] | None], nothing: Any) -> Any:
        if all(column is None for column in columns):
            return None
        sizes = [len(part.rows) for part in parts]
        joined: list[Any] = []
        for column, size in zip(columns, sizes, strict=True):
            joined += [nothing] * size if column is None else column
        return [joined[position] for position in order]

    return Outgoing(
        topic,
        together([part.values for part in parts], None),
        together([part.keys for part in parts], None),
        together([part.headers for part in parts], ()),
    )
