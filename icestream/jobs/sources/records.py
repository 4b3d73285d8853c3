"""Records of a source become bytes for Kafka: transforms, then converters. Called by `source_manager`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from icestream.api.config import Config
from icestream.converters.catalog import converter_from
from icestream.kafka.bulk_producer import ANY_PARTITION, OutgoingColumns
from icestream.records.records import ConversionError, Converter, Failure, Header, Records
from icestream.records.values import Value
from icestream.transforms.chain import Chain, chain_from

_Headers = list[tuple[str, bytes | None]]
_KEY, _VALUE, _HEADER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"


@dataclass
class ConvertedBatch:
    """What becomes of a batch: each of its records is in one of these."""

    outgoing: list[OutgoingColumns] = field(default_factory=list)
    failed: dict[int, Failure] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    """Row → alias of the transform that dropped it."""
    transform_seconds: float = 0.0


@dataclass(frozen=True)
class SourcePath:
    """The transforms and converters of one connector."""

    chain: Chain
    keys: Converter
    values: Converter
    headers: Converter

    def convert(self, groups: Sequence[Records]) -> ConvertedBatch:
        """Raises what a converter raises that cannot reach its registry."""
        began = time.perf_counter()
        outcome = self.chain.run(groups)
        seconds = time.perf_counter() - began
        converted = ConvertedBatch(dropped=outcome.dropped, transform_seconds=seconds)
        converted.failed.update(outcome.failed)
        by_topic: dict[str, list[_Written]] = {}
        for records in outcome.records:
            written = self._written(records, converted.failed)
            if written is not None:
                by_topic.setdefault(records.topic, []).append(written)
        converted.outgoing = [_in_order(topic, parts) for topic, parts in by_topic.items()]
        return converted

    def _written(self, records: Records, failed: dict[int, Failure]) -> _Written | None:
        """The bytes of those records that can be written."""
        bad: dict[int, Failure] = {}
        keys = _tried(self.keys, _KEY, records.topic, records.key, len(records), bad)
        values = _tried(self.values, _VALUE, records.topic, records.value, len(records), bad)
        headers = [
            _tried(self.headers, _HEADER, records.topic, header.values, len(records), bad)
            for header in records.headers
        ]
        if not bad:
            return _Written(
                records.rows.tolist(),
                values,
                None if records.key is None else keys,
                _by_record(records.headers, headers),
                records.timestamps.to_pylist(),
                None if records.partitions is None else records.partitions.tolist(),
            )
        failed.update({int(records.rows[position]): why for position, why in bad.items()})
        keep = np.setdiff1d(np.arange(len(records)), np.fromiter(bad, np.int64, len(bad)))
        return self._written(records.take(keep), failed) if len(keep) else None


def source_path_from(config: Config) -> SourcePath:
    """Raises ConfigError."""
    key, value, header = (converter_from(config, kind) for kind in ("key", "value", "header"))
    return SourcePath(chain_from(config), key, value, header)


@dataclass
class _Written:
    """The records of one group, as bytes."""

    rows: Sequence[int]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    headers: Sequence[_Headers] | None
    timestamps: Sequence[int]
    partitions: Sequence[int] | None


def _tried(
    converter: Converter, stage: str, topic: str, value: Value, length: int, failed: dict[int, Failure]
) -> Sequence[bytes | None]:
    try:
        return converter.from_connect(topic, value, length)
    except ConversionError as error:
        failed.update({position: replace(why, stage=stage) for position, why in error.failed.items()})
        return ()


def _by_record(
    headers: Sequence[Header], written: Sequence[Sequence[bytes | None]]
) -> Sequence[_Headers] | None:
    if not headers:
        return None
    names = [header.name for header in headers]
    return [list(zip(names, row, strict=True)) for row in zip(*written, strict=True)]


def _in_order(topic: str, parts: Sequence[_Written]) -> OutgoingColumns:
    """Groups of records put back into the order that their rows have."""
    if len(parts) == 1:
        (part,) = parts
        return OutgoingColumns(topic, part.values, part.keys, part.headers, part.timestamps, part.partitions)
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable").tolist()

    def together(name: str, nothing: Any = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        joined: list[Any] = []
        for part, column in zip(parts, columns, strict=True):
            joined += [nothing] * len(part.rows) if column is None else column
        return [joined[position] for position in order]

    return OutgoingColumns(
        topic,
        together("values"),
        together("keys"),
        together("headers"),
        together("timestamps"),
        together("partitions", ANY_PARTITION),
    )
