"""Spark's own Delta reads what our sink wrote, with pruning on every type; and it may write to our tables
between our commits. delta-rs reads the same."""

from __future__ import annotations

import datetime as dt
import itertools
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.cli.sql import jar_settings
from icestream.connectors.delta.files.stage import StageWriter, TablePlan
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.connectors.delta.sink import table_from
from icestream.pipeline.sql import run_sql, split_statements
from icestream.records.origins import RowOrigins
from tests.integration.foreign.conftest import FOR_SMALL_TABLES, in_utc

pytestmark = pytest.mark.network

SOURCE = Partition("topic", 0)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("s", pa.string()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("d", pa.date32()),
        pa.field("big", pa.decimal128(38, 6)),
        pa.field("small", pa.decimal128(10, 2)),
        pa.field("f", pa.float64()),
        pa.field("i", pa.int32()),
        pa.field("bo", pa.bool_()),
        pa.field("b", pa.binary()),
        pa.field("st", pa.struct([pa.field("x", pa.int64()), pa.field("big", pa.decimal128(38, 6))])),
        pa.field("l", pa.list_(pa.field("element", pa.int64()))),
        pa.field("m", pa.map_(pa.string(), pa.float64())),
    ]
)
LONG = "é" * 70


def row(number: int) -> dict[str, Any]:
    if number % 7 == 6:
        return {"id": number}
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC) + dt.timedelta(microseconds=1001 * number)
    big = Decimal("1234567890123456.123451") + number
    return {
        "id": number,
        "s": f"{LONG}{number}" if number % 2 else f"{chr(0x10FFFF) * 70}{number}",
        "t": at,
        "d": dt.date(1, 1, 1) if number == 1 else dt.date(2026, 11, 1) + dt.timedelta(days=number),
        "big": big,
        "small": Decimal(number) / 4 - 2,
        "f": float("nan") if number % 5 == 0 else number / 3,
        "i": -number,
        "bo": number % 3 == 0,
        "b": bytes([number]) * 3,
        "st": {"x": number, "big": big},
        "l": [number, None],
        "m": [("k", float(number))],
    }


class DeltaSpark:
    """Spark with Delta's own jars, in a process of its own: this one's session is the worker's."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), in_utc)
        # Now, so that the process is the fixture's and not the first test's.
        self._pool.submit(int).result()

    def __call__(self, config: dict[str, str], text: str) -> list[tuple[Any, ...]]:
        """What the last statement answers."""
        settings = {
            **FOR_SMALL_TABLES,
            "spark.databricks.delta.snapshotPartitions": "1",
            **jar_settings([config]),
        }
        done = self._pool.submit(run_sql, [config], split_statements(text), settings).result(timeout=600)
        return list(done[-1].rows)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def delta_spark() -> Iterator[DeltaSpark]:
    spark = DeltaSpark()
    yield spark
    spark.close()


class World:
    """One table, and the commits of a job to it."""

    def __init__(self, folder: Path, partition_by: Sequence[str] = (), **options: str) -> None:
        self.place = str(folder / "t")
        self.config = {
            "connector.class": "DeltaSinkConnector",
            "delta.tables": "t",
            "delta.location": str(folder),
            **options,
        }
        self._numbers = itertools.count(1)
        self._last: Checkpoint | None = None
        self._next = 0
        DeltaTable.create(self.place, SCHEMA, partition_by=list(partition_by))

    @property
    def name(self) -> str:
        return f"delta.`{self.place}`"

    def commit(self, *files: Sequence[dict[str, Any]]) -> None:
        """Each list of rows is a file, or one in each partition."""
        target = table_from("t", "job", self.config)
        plan = target.plan({})
        assert isinstance(plan, TablePlan)
        count = sum(map(len, files))
        number = next(self._numbers)
        ends = Offsets({SOURCE: self._next}), Offsets({SOURCE: self._next + count})
        batch = Batch(f"11111111-1111-1111-1111-{number:012}", *ends)
        staged = []
        for rows in files:
            writer = StageWriter(plan, batch.id)
            offsets = np.arange(self._next, self._next + len(rows))
            writer.write(pa.Table.from_pylist(list(rows), SCHEMA), RowOrigins.of_one(SOURCE, offsets))
            self._next += len(rows)
            staged += writer.close()
        source = TopicIds("cluster", {SOURCE.topic: "id"})
        after = checkpoint_after(self._last, batch, {SOURCE: Counts(count, count)}, source)
        target.commit(Commit(after, self._last, plan, Staged(staged, count)))
        found = target.found().checkpoint
        assert found is not None and found.commit == after.commit
        self._last = found

    def by_rust(self, where: str) -> list[int]:
        query = QueryBuilder().register("t", DeltaTable(self.place))
        found = pa.table(query.execute(f"SELECT id FROM t WHERE {where}").read_all())
        return sorted(found["id"].to_pylist())


QUERIES: dict[str, tuple[str, list[int]]] = {
    "text": (f"s = '{LONG}3'", [3]),
    "text that is cut": (f"s >= '{LONG}9'", [0, 2, 4, 8, 9, 10, 12, 14, 16, 18]),
    "whole number": ("i = -8", [8]),
    "date": ("d = DATE '2026-11-05'", [4]),
    "decimal of many digits": ("big = 1234567890123461.123451BD", [5]),
    "decimal above": ("big > 1234567890123474.123450BD", [18, 19]),
    "decimal": ("small = 0.25BD", [9]),
    "inside of a struct": ("st.big = 1234567890123466.123451BD", [10]),
    "float": ("f = 3.0", [9]),
    "float below": ("f < 0.7", [1, 2]),
    "not a number is greatest": ("f > 6.2", [0, 5, 10, 15, 19]),
    "boolean": ("bo AND id < 7", [0, 3]),
    "bytes": ("b = X'0C0C0C'", [12]),
    "time": ("t = TIMESTAMP '1970-01-01 00:00:00.008007Z'", [8]),
    "time above": ("t > TIMESTAMP '1970-01-01 00:00:00.018017Z'", [19]),
    "nothing": ("s IS NULL", [6, 13]),
    "something": ("t IS NOT NULL AND id > 16", [17, 18, 19]),
}
"""For Spark: rows 0 to 19, of which 6 and 13 have only an id."""


@pytest.mark.parametrize(
    "partition_by", [(), pytest.param(("d", "small"), marks=pytest.mark.long)], ids=["plain", "divided"]
)
def test_spark_finds_by_every_type_what_we_wrote(
    tmp_path: Path, delta_spark: DeltaSpark, partition_by: Sequence[str]
) -> None:
    world = World(tmp_path, partition_by)
    for start in range(0, 20, 4):
        world.commit([row(one) for one in range(start, start + 4)])
    union = " UNION ALL ".join(
        f"SELECT '{what}' AS what, id FROM {world.name} WHERE {where}" for what, (where, _) in QUERIES.items()
    )
    found: dict[str, list[int]] = {what: [] for what in QUERIES}
    for what, id_ in delta_spark(world.config, union):
        found[what].append(id_)
    expected = {what: ids for what, (_, ids) in QUERIES.items()}
    assert {what: sorted(ids) for what, ids in found.items()} == expected
    rows = delta_spark(world.config, f"SELECT id, s, t, d, big, small, i, bo FROM {world.name} ORDER BY id")
    for told, wanted in zip(rows, (row(one) for one in range(20)), strict=True):
        at = wanted.get("t")
        names = ("s", None, "d", "big", "small", "i", "bo")
        assert told[0] == wanted["id"]
        assert (told[2] and told[2].replace(tzinfo=dt.UTC)) == at
        assert [one for one, name in zip(told[1:], names, strict=True) if name] == [
            wanted.get(name) for name in names if name
        ]
    for where, ids in (("big = 1234567890123461.123451", [5]), ("i = -8", [8]), ("f < 0.7", [1, 2])):
        if "big" not in where:  # to DataFusion such a literal is a float
            assert world.by_rust(where) == ids


def test_spark_writes_between_our_commits_and_we_go_on(tmp_path: Path, delta_spark: DeltaSpark) -> None:
    world = World(tmp_path)
    for start in range(0, 8, 2):
        world.commit([row(start), row(start + 1)])
    delta_spark(world.config, f"OPTIMIZE {world.name}")
    world.commit([row(8)], [row(9)])
    delta_spark(
        world.config,
        f"DELETE FROM {world.name} WHERE id IN (1, 8); UPDATE {world.name} SET i = 1000 WHERE id = 2; "
        f"INSERT INTO {world.name} (id, t) VALUES (100, TIMESTAMP '2026-01-01 00:00:00.123456Z')",
    )
    world.commit([row(10)])
    kept = [0, 2, 3, 4, 5, 6, 7, 9, 10, 100]
    ids = f"SELECT id FROM {world.name} ORDER BY id"
    assert [id_ for (id_,) in delta_spark(world.config, ids)] == kept
    # Files of Spark among ours: they are merged, and their times of 96 bits stay what they are.
    maintainer = DeltaPlugin().maintainer("job", world.config, "t")
    (step,) = maintainer.compact({"min-files": 2}, dry_run=False)
    assert step.after < step.before
    assert [id_ for (id_,) in delta_spark(world.config, ids)] == kept == world.by_rust("true")
    ((moment,),) = delta_spark(world.config, f"SELECT CAST(t AS STRING) FROM {world.name} WHERE id = 100")
    assert moment == "2026-01-01 00:00:00.123456"
    world.commit([row(11)])
    assert delta_spark(world.config, f"SELECT count(*) FROM {world.name}") == [(len(kept) + 1,)]
