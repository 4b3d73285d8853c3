"""`python -m bench.records`, which `make bench-records` calls: one core, from the bytes of records to rows
and files.

No Kafka and no Spark: what is measured is what runs inside a task, between reading and committing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bench import machine
from bench.one_core import CHUNK_ROWS, Case, Speed, chunks_of, in_turn
from bench.record_kinds import KINDS
from icestream.api.offsets import Partition
from icestream.api.sink import TargetTask, WriterTask
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import TablePlan
from icestream.connectors.iceberg.table import IcebergTable
from icestream.connectors.iceberg.writer import IcebergWriter
from icestream.embedded.minio_logs import generate
from icestream.embedded.minio_tables import LOG_TABLES, sqlite_catalog
from icestream.kafka.chunk import Chunk, Part
from icestream.pipeline.record_path import RecordPath, RecordSettings, record_path_from
from icestream.records.records import Converter
from icestream.records.rows import Indexes
from icestream.rows.to_rows import RowConverter
from icestream.tables.file_origins import RowOrigins

RESULTS: Final = Path(__file__).parent / "results" / "records.json"
_TABLE: Final = LOG_TABLES[0]
_SOURCE: Final = Partition(_TABLE.topic, 0)
_PLAIN: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
}
FIVE_TRANSFORMS: Final = {
    "transforms": "source,drop,code,when,route",
    "transforms.source.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.source.static.field": "origin",
    "transforms.source.static.value": "minio",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
    "transforms.drop.exclude": "versionId",
    "transforms.drop.renames": "node:host",
    "transforms.code.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.code.spec": "version:int32",
    "transforms.when.type": "org.apache.kafka.connect.transforms.TimestampConverter$Value",
    "transforms.when.field": "time",
    "transforms.when.target.type": "Timestamp",
    "transforms.when.format": "yyyy-MM-dd'T'HH:mm:ss",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "(.*)logs",
    "transforms.route.replacement": "$1",
}
_TEXT: Final = {"type": "string"}
VALIDATION: Final = {
    "value.schema.inline": json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["version", "time", "name", "callInfo"],
            "properties": {
                "version": {"enum": ["1", "2"]},
                "time": {"type": "string", "format": "date-time"},
                "name": {"type": "string", "pattern": "^[A-Za-z]"},
                "bucket": {"type": "string", "minLength": 1, "maxLength": 63},
                "object": _TEXT,
                "tags": {"type": "object", "additionalProperties": _TEXT},
                "callInfo": {
                    "type": "object",
                    "required": ["httpStatusCode", "requestID"],
                    "properties": {
                        "httpStatusCode": {"type": "integer", "minimum": 100, "maximum": 599},
                        "rx": {"type": "integer", "minimum": 0},
                        "tx": {"type": "integer", "minimum": 0},
                        "requestID": {"type": "string", "minLength": 16},
                    },
                },
            },
        }
    )
}


@dataclass(frozen=True)
class HeldChunk(Chunk):
    """A chunk that did not come from Kafka."""

    held: Sequence[bytes] = ()

    def __len__(self) -> int:
        return len(self.held)

    def values(self) -> list[bytes | None]:
        return list(self.held)

    def keys(self) -> list[bytes | None]:
        return [None] * len(self.held)

    def timestamps(self) -> Indexes:
        return np.zeros(len(self.held), np.int64)

    def offsets(self) -> Indexes:
        return np.arange(len(self.held))


@dataclass(frozen=True)
class Result:
    """A figure with its bar: so many a second, or such a part of the speed without it."""

    name: str
    speed: Speed
    bar: float
    of: str | None = None
    share: float | None = None

    @property
    def holds(self) -> bool:
        return (self.share if self.share is not None else self.speed.a_second) >= self.bar


def held(records: Sequence[bytes]) -> list[HeldChunk]:
    return [HeldChunk((Part(_SOURCE, 0, len(chunk)),), (), held=chunk) for chunk in chunks_of(records)]


def decodes(converter: Converter, records: Sequence[bytes], plan: TablePlan) -> Case:
    """Bytes to rows of the table."""
    to_table = RowConverter(plan.arrow_schema)
    chunks = chunks_of(records)

    def case(number: int) -> None:
        rows = 0
        for _, value in converter.to_connect(_SOURCE.topic, chunks[number]).groups:
            assert value is not None
            rows += to_table.to_rows(value, len(value)).rows.num_rows
        assert rows == CHUNK_ROWS, f"{CHUNK_ROWS - rows} records did not become rows"

    return case


def lands(path: RecordPath, chunks: Sequence[HeldChunk], plan: TablePlan) -> Case:
    """Bytes to Parquet files, by partition; all chunks of a round make one task."""
    task = WriterTask([TargetTask(plan.name, plan)], "bench")
    writer = IcebergWriter(task)

    def case(number: int) -> None:
        nonlocal writer
        origins = RowOrigins([_SOURCE], chunks[number].sources, chunks[number].offsets())
        writer.write(path.prepare(chunks[number]).records, origins)
        if number == len(chunks) - 1:
            writer.close()
            writer = IcebergWriter(task)

    return case


def _path(more: Mapping[str, str] = MappingProxyType({})) -> RecordPath:
    return record_path_from(RecordSettings.of({**_PLAIN, **more}))


def spoilt(records: Sequence[bytes]) -> list[bytes]:
    """One in a hundred is broken, in turn as JSON, as a value and as a row."""
    ways: list[Any] = [
        lambda record: record[:-20],
        lambda record: record.replace(b'"httpStatusCode":', b'"httpStatusCode":"x",".":', 1),
        lambda record: record.replace(b'"time":', b'"when":', 1),
    ]
    return [
        ways[number // 100 % 3](record) if number % 100 == 50 else record
        for number, record in enumerate(records)
    ]


def measure(records: int, rounds: int) -> list[Result]:
    logs = list(generate("api", records))
    number = records // CHUNK_ROWS
    with tempfile.TemporaryDirectory(prefix="icestream-bench-") as folder:
        catalog = open_catalog(sqlite_catalog(folder))
        _TABLE.create(catalog)
        plan = IcebergTable(catalog, _TABLE.table, "bench", write_props={}).plan({})
        catalog.close()
        return [*_converters(logs, plan, number, rounds), *_shares(logs, plan, number, rounds)]


def _converters(logs: list[bytes], plan: TablePlan, number: int, rounds: int) -> list[Result]:
    cases = {}
    for kind in KINDS:
        encoded = kind.encode(logs)
        cases[kind.name] = decodes(encoded.converter, encoded.records, plan)
    speeds = in_turn(cases, number, rounds)
    return [Result(f"{kind.name} to rows", speeds[kind.name], kind.bar) for kind in KINDS]


def _shares(logs: list[bytes], plan: TablePlan, number: int, rounds: int) -> list[Result]:
    plain, bad = held(logs), held(spoilt(logs))
    cases = {
        "plain": lands(_path(), plain, plan),
        "five transforms": lands(_path(FIVE_TRANSFORMS), plain, plan),
        "validation": lands(_path(VALIDATION), plain, plan),
        "1 % bad": lands(_path(), bad, plan),
    }
    bars = {"plain": 0.0, "five transforms": 0.8, "validation": 0.8, "1 % bad": 2 / 3}
    speeds = in_turn(cases, number, rounds)
    return [
        Result(
            f"to Parquet, {name}",
            speed,
            bars[name],
            *(() if name == "plain" else ("plain", speed.a_second / speeds["plain"].a_second)),
        )
        for name, speed in speeds.items()
    ]


@click.command()
@click.option("--records", default=100_000, show_default=True, type=click.IntRange(min=CHUNK_ROWS))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--keep/--no-keep", default=False, help="Write the figures to bench/results.")
def main(records: int, rounds: int, keep: bool) -> None:
    """Records a second on one core: converters, transforms, validation, bad records."""
    results = measure(records, rounds)
    Console().print(_shown(results))
    if keep:
        RESULTS.write_text(json.dumps(_as_json(results, records), indent=2) + "\n")


def _shown(results: Sequence[Result]) -> Table:
    table = Table("", "records/s", "µs", "share", "bar", "")
    for one in results:
        share = "" if one.share is None else f"{one.share:.2f}"
        bar = f"{one.bar:,.0f}" if one.share is None else f"{one.bar:.2f}"
        table.add_row(
            one.name,
            f"{one.speed.a_second:,.0f}",
            f"{one.speed.microseconds:.2f}",
            share,
            bar if one.bar else "",
            "holds" if one.holds else "misses",
        )
    return table


def _as_json(results: Sequence[Result], records: int) -> dict[str, Any]:
    return {
        "measured_on": datetime.now(UTC).date().isoformat(),
        "machine": machine.machine(),
        "records": records,
        "results": [
            {
                "name": one.name,
                "records_a_second": round(one.speed.a_second),
                "microseconds": round(one.speed.microseconds, 2),
                "share_of_plain": one.share and round(one.share, 3),
                "bar": round(one.bar, 3),
            }
            for one in results
        ],
    }


if __name__ == "__main__":
    main()
