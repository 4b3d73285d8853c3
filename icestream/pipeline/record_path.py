"""From the bytes of a chunk to records: converters, the validator, the chain of transforms. Called by
`task`.

Made from a connector's config, once per process: what it learns of schemas and fields stays.
"""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.api.config import Config
from icestream.converters.catalog import TAKES_ANY_BYTES, converter_from, named_converter
from icestream.kafka.chunk import Chunk
from icestream.records.column import Column
from icestream.records.records import Converted, Converter, Failure, Header, Records
from icestream.records.rows import Indexes
from icestream.records.values import Value
from icestream.transforms.chain import Chain, chain_from
from icestream.validation.settings import schemas_of
from icestream.validation.validator import SchemaValidator, TopicSchemas

VALUE_CONVERTER: Final = "VALUE_CONVERTER"
_STAGES: Final = {"key": "KEY_CONVERTER", "value": VALUE_CONVERTER, "header": "HEADER_CONVERTER"}
_KEYS: Final = ("key.converter", "value.converter", "header.converter", "transforms", "predicates")
_Codes = np.ndarray[tuple[int], np.dtype[np.int64]]
_Headers = tuple[tuple[str, bytes | None], ...]
_NOWHERE = -1
"""The code of a row that did not convert."""
_NO_TIMESTAMP = -1
"""How Kafka writes that a record has none."""


@dataclass(frozen=True)
class RecordSettings:
    """What a task is told of records. Plain data: it crosses process boundaries."""

    config: Mapping[str, str]
    """The keys of the converters and transforms."""
    schemas: TopicSchemas | None = None
    needs_keys: bool = False
    """Whether the sink asks for keys, and not only transforms."""
    needs_headers: bool = False
    """The same of headers."""

    @classmethod
    def of(cls, config: Config, *, needs_keys: bool = False, needs_headers: bool = False) -> RecordSettings:
        """Reads the schemas from their files, which only this machine may have. Raises ConfigError."""
        mine = {key: value for key, value in config.items() if key.startswith(_KEYS)}
        return cls(mine, schemas_of(config), needs_keys, needs_headers)


@dataclass
class Prepared:
    """Every row of a chunk is in one of the three."""

    records: Sequence[Records]
    failed: dict[int, Failure] = field(default_factory=dict)
    dropped: Mapping[int, str] = field(default_factory=dict)
    """Row → alias of the transform that dropped it."""
    transform_seconds: float = 0.0


@dataclass(frozen=True)
class RecordPath:
    keys: Converter | None
    """None: nobody asks for keys, and they cannot be wrong."""
    values: Converter
    headers: Converter | None
    """None: headers cannot be wrong."""
    chain: Chain
    validator: SchemaValidator | None
    classes: Mapping[str, str]
    """Java's names of the converters of key, value and header."""
    with_headers: bool = False
    """Whether records have their headers."""

    def named(self, failure: Failure) -> Failure:
        """A failure that a sink found in a value that it decoded itself, with the class of the converter."""
        if failure.stage != VALUE_CONVERTER:
            return failure
        return replace(failure, class_name=self.classes["value"])

    def prepare(self, chunk: Chunk) -> Prepared:
        topic = chunk.topic
        keys = Converted([(None, None)]) if self.keys is None else self.keys.to_connect(topic, chunk.keys())
        values = self.values.to_connect(topic, chunk.values())
        # What Kafka Connect converts first is the reason: the key, then the value, then the headers.
        failed_rows = self._failed_headers(chunk)
        failed_rows |= self._failed("value", values.failed)
        failed_rows |= self._failed("key", keys.failed)
        groups = _groups_of(chunk, keys, values, failed_rows, with_headers=self.with_headers)
        if self.validator is not None:
            groups = self._valid(self.validator, groups, failed_rows)
        began = time.perf_counter()
        outcome = self.chain.run(groups)
        seconds = time.perf_counter() - began
        failed_rows |= outcome.failed
        return Prepared(outcome.records, failed_rows, outcome.dropped, seconds)

    def _valid(
        self, validator: SchemaValidator, groups: Sequence[Records], failed_rows: dict[int, Failure]
    ) -> list[Records]:
        good: list[Records] = []
        for group in groups:
            applied = validator.check(group)
            good.extend(applied.records)
            failed_rows |= self._failed("value", applied.failed)
        return good

    def _failed_headers(self, chunk: Chunk) -> dict[int, Failure]:
        if self.headers is None:
            return {}
        rows: dict[str, list[int]] = {}
        values: dict[str, list[bytes | None]] = {}
        for row, headers in enumerate(chunk.headers()):
            for name, value in headers:
                rows.setdefault(name, []).append(row)
                values.setdefault(name, []).append(value)
        failed_rows: dict[int, Failure] = {}
        for name, mine in rows.items():
            failed = self.headers.to_connect(chunk.topic, values[name]).failed
            failed_rows |= self._failed("header", {mine[at]: why for at, why in failed.items()})
        return failed_rows

    def _failed(self, kind: str, failed: Mapping[int, Failure]) -> dict[int, Failure]:
        return {
            row: replace(why, stage=_STAGES[kind], class_name=self.classes[kind])
            for row, why in failed.items()
        }


def _groups_of(
    chunk: Chunk, keys: Converted, values: Converted, without: Collection[int], *, with_headers: bool
) -> list[Records]:
    """The rows that converted, in groups whose keys, values and header names are alike."""
    headers: Sequence[_Headers] = chunk.headers() if with_headers else ()
    signatures, header_codes = _signatures(headers) if headers else ([()], np.zeros(len(chunk), np.int64))
    key_codes, value_codes = _codes(keys, len(chunk)), _codes(values, len(chunk))
    mixed = (key_codes * len(values.groups) + value_codes) * len(signatures) + header_codes
    mixed[np.fromiter(without, np.int64, len(without))] = _NOWHERE
    moments, partitions, offsets = chunk.timestamps(), chunk.partitions(), chunk.offsets()
    groups = []
    for code in np.unique(mixed).tolist():
        if code == _NOWHERE:
            continue
        rows = np.flatnonzero(mixed == code)
        rest, signature = divmod(code, len(signatures))
        key, value = divmod(rest, len(values.groups))
        groups.append(
            Records(
                rows=rows,
                topic=chunk.topic,
                timestamps=pa.array(moments[rows], mask=moments[rows] == _NO_TIMESTAMP),
                key=_cut(keys.groups[key], rows),
                value=_cut(values.groups[value], rows),
                headers=_headers(headers, signatures[signature], rows),
                partitions=partitions[rows],
                offsets=offsets[rows],
            )
        )
    return groups


def _codes(converted: Converted, length: int) -> _Codes:
    """For each row the number of its group."""
    codes = np.full(length, _NOWHERE, np.int64)
    for code, (rows, _) in enumerate(converted.groups):
        codes[slice(None) if rows is None else rows] = code
    return codes


def _cut(group: tuple[Indexes | None, Value], rows: Indexes) -> Value:
    """The values of these rows of the chunk, which are all in the group."""
    held, value = group
    if value is None or np.array_equal(rows, np.arange(len(value)) if held is None else held):
        return value
    if held is None:
        return value.take(rows)
    # A converter may have gathered the rows of a group in any order.
    order = np.argsort(held)
    return value.take(order[np.searchsorted(held, rows, sorter=order)])


def _signatures(rows: Sequence[_Headers]) -> tuple[list[tuple[str, ...]], _Codes]:
    """The distinct lists of header names, and which of them each row has."""
    found: dict[tuple[str, ...], int] = {}
    names = (tuple(name for name, _ in headers) for headers in rows)
    codes = np.fromiter((found.setdefault(one, len(found)) for one in names), np.int64, len(rows))
    return list(found), codes


def _headers(headers: Sequence[_Headers], names: Sequence[str], rows: Indexes) -> tuple[Header, ...]:
    if not names:
        return ()
    mine = [headers[row] for row in rows.tolist()]
    return tuple(
        Header(name, Column(pa.array([one[at][1] for one in mine], pa.binary())), raw=True)
        for at, name in enumerate(names)
    )


def record_path_from(settings: RecordSettings) -> RecordPath:
    """Raises ConfigError."""
    config = settings.config
    chain = chain_from(config)
    classes = {kind: named_converter(config, kind).class_name for kind in ("key", "value", "header")}
    needs_keys = settings.needs_keys or chain.needs_keys or classes["key"] not in TAKES_ANY_BYTES
    return RecordPath(
        keys=converter_from(config, "key") if needs_keys else None,
        values=converter_from(config, "value"),
        headers=None if classes["header"] in TAKES_ANY_BYTES else converter_from(config, "header"),
        chain=chain,
        validator=SchemaValidator(settings.schemas) if settings.schemas else None,
        classes=classes,
        with_headers=settings.needs_headers or chain.needs_headers,
    )


def process_record_path(settings: RecordSettings) -> RecordPath:
    """This process's record path for a connector."""
    config = sorted(settings.config.items())
    return _record_path(pickle.dumps((config, settings.schemas, settings.needs_keys, settings.needs_headers)))


@functools.lru_cache(maxsize=64)
def _record_path(pickled: bytes) -> RecordPath:
    config, *rest = pickle.loads(pickled)
    return record_path_from(RecordSettings(dict(config), *rest))
