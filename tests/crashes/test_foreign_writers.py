"""The crash table of the design, row 7: somebody else changes the table in the middle of a batch.

Compaction by Spark's Iceberg runtime is in tests/integration.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.pipeline import Pipeline


def rows(first: int, last: int) -> pa.Table:
    ids = list(range(first, last))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "time": pa.nulls(len(ids), pa.timestamp("us", tz="UTC")),
            "bucket": pa.array(["foreign"] * len(ids)),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("time", pa.timestamp("us", tz="UTC")),
                pa.field("bucket", pa.string()),
            ]
        ),
    )


def append(pipeline: Pipeline) -> None:
    pipeline.table().append(rows(1_000_000, 1_000_010))
    pipeline.sent.update(range(1_000_000, 1_000_010))


def rewrite(pipeline: Pipeline) -> None:
    """What a compaction does: the same rows in other files."""
    table = pipeline.table()
    table.overwrite(table.scan().to_arrow())


def delete(pipeline: Pipeline) -> None:
    pipeline.table().delete("id < 10")
    for number in range(10):
        del pipeline.sent[number]


def add_column(pipeline: Pipeline) -> None:
    with pipeline.table().update_schema() as update:
        update.add_column("note", StringType())


CHANGES = [append, rewrite, delete, add_column]


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_changed_while_a_batch_is_staged_takes_the_batch_once(
    change: Callable[[Pipeline], None], pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(500), spoil=range(2))
    pipeline.drain(spark)
    pipeline.produce(range(500, 1000), spoil=range(2, 4))
    points: list[str] = []

    def interfere(point: str) -> None:
        points.append(point)
        if points.count("staged") == 1 and point == "staged":
            change(pipeline)

    pipeline.drain(spark, interfere)
    pipeline.check()
    pipeline.produce(range(1000, 1100))
    pipeline.drain(spark)
    pipeline.check()


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_changed_between_our_check_and_the_catalogs_takes_the_batch_once(
    change: Callable[[Pipeline], None],
    pipeline: Pipeline,
    spark: SparkPlane,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline.produce(range(500), spoil=range(2))
    pipeline.drain(spark)
    pipeline.produce(range(500, 1000), spoil=range(2, 4))
    with SharedCatalog(pipeline.config) as catalog:
        commit_table = catalog.commit_table

        def late(*arguments: object) -> object:
            monkeypatch.undo()
            change(pipeline)
            return commit_table(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(catalog, "commit_table", late)
        pipeline.drain(spark)
    pipeline.check()
