"""The crash table of the design, row 8: somebody expires, rolls back or drops what the job has committed."""

from __future__ import annotations

import pytest

from icestream.api.errors import LostOffsets
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.pipeline import SCHEMA, SPEC, Pipeline
from tests.crashes.test_foreign_writers import append, rewrite


def expire_all_but_the_current(pipeline: Pipeline) -> None:
    table = pipeline.table()
    current = table.current_snapshot()
    assert current is not None
    old = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_a_job_whose_snapshots_were_all_expired_goes_on_from_the_table_property(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(500), spoil=range(2))
    pipeline.drain(spark)
    rewrite(pipeline)
    expire_all_but_the_current(pipeline)
    remaining = pipeline.table().snapshots()
    assert len(remaining) == 1
    assert not any(pipeline.name in key for key in remaining[0].summary.additional_properties)  # type: ignore[union-attr]
    pipeline.produce(range(500, 1000), spoil=range(2, 4))
    pipeline.drain(spark)
    pipeline.check()


def test_a_table_rolled_back_takes_the_lost_rows_again(pipeline: Pipeline, spark: SparkPlane) -> None:
    pipeline.produce(range(500))
    pipeline.drain(spark)
    earlier = pipeline.table().current_snapshot()
    assert earlier is not None
    pipeline.produce(range(500, 1000))
    pipeline.drain(spark)
    with pipeline.table().manage_snapshots() as manage:
        manage.rollback_to_snapshot(earlier.snapshot_id)
    assert pipeline.ids().total() == 500
    pipeline.drain(spark)
    pipeline.check()


def test_a_table_rolled_back_behind_the_job_takes_everything_again(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    append(pipeline)
    before = pipeline.table().current_snapshot()
    assert before is not None
    pipeline.produce(range(1000))
    pipeline.drain(spark)
    with pipeline.table().manage_snapshots() as manage:
        manage.rollback_to_snapshot(before.snapshot_id)
    assert pipeline.ids().total() == 10
    pipeline.drain(spark)
    pipeline.check()


def test_a_table_rolled_back_while_the_job_runs_takes_the_lost_rows_again(
    pipeline: Pipeline, spark: SparkPlane
) -> None:
    pipeline.produce(range(500))
    pipeline.drain(spark)
    earlier = pipeline.table().current_snapshot()
    assert earlier is not None
    pipeline.produce(range(500, 1000))
    pipeline.drain(spark)
    pipeline.produce(range(1000, 1500))
    points: list[str] = []

    def roll_back(point: str) -> None:
        points.append(point)
        if points == ["planned", "staged"]:
            with pipeline.table().manage_snapshots() as manage:
                manage.rollback_to_snapshot(earlier.snapshot_id)

    pipeline.drain(spark, roll_back)
    pipeline.check()


def test_a_table_dropped_and_created_again_stops_the_job(pipeline: Pipeline, spark: SparkPlane) -> None:
    pipeline.produce(range(500))
    pipeline.drain(spark)
    pipeline.catalog.drop_table("db.t")
    pipeline.catalog.create_table("db.t", SCHEMA, partition_spec=SPEC)
    pipeline.produce(range(500, 600))
    with pytest.raises(LostOffsets, match="dropped"):
        pipeline.drain(spark)
    assert pipeline.table().current_snapshot() is None
