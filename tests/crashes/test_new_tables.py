"""Tables that the job creates: killed before and after it creates one, and before and after the first commit
to it. Whoever comes next goes on with the table that is there."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError, LostOffsets
from icestream.connectors.iceberg.new_table import NewTable
from tests.crashes.conftest import MakePipeline, StartManager
from tests.crashes.pipeline import SCHEMA, Pipeline
from tests.crashes.processes import Fault
from tests.crashes.test_moved_offsets import Hand
from tests.crashes.without_spark import manager, run

CREATES = {
    "iceberg.tables.auto-create-enabled": "true",
    "iceberg.tables.default-partition-by": "bucket",
    "iceberg.tables.default-id-columns": "id",
    "iceberg.tables.auto-create-props.owner": "crashes",
}


@pytest.fixture
def pipeline(make_pipeline: MakePipeline) -> Pipeline:
    return without_tables(make_pipeline, ("lake.raw.t",))


def without_tables(make_pipeline: MakePipeline, tables: tuple[str, ...]) -> Pipeline:
    pipeline = make_pipeline((), **CREATES)
    pipeline.tables = tables
    return pipeline


def assert_created(pipeline: Pipeline) -> None:
    pipeline.check()
    for name in pipeline.tables:
        table = pipeline.table(name)
        assert table.properties["owner"] == "crashes"
        assert [str(field) for field in table.schema().fields] == [
            "1: id: required long",
            "2: time: optional string",
            "3: bucket: optional string",
        ]
        assert [field.name for field in table.spec().fields] == ["bucket"]
        assert table.schema().identifier_field_names() == {"id"}


@pytest.mark.parametrize(
    ("point", "exists", "rows"),
    [
        pytest.param("planned", False, 0, marks=pytest.mark.long),
        ("creating lake.raw.t", False, 0),
        ("created lake.raw.t", True, 0),
        pytest.param("staged", True, 0, marks=pytest.mark.long),
        ("sending", True, 0),
        ("accepted", True, 1000),
        pytest.param("committed lake.raw.t", True, 1000, marks=pytest.mark.long),
        pytest.param("closing", True, 1000, marks=pytest.mark.long),
    ],
)
def test_a_manager_killed_around_the_creation_of_its_table_leaves_every_row_once(
    point: str, exists: bool, rows: int, pipeline: Pipeline, start_manager: StartManager
) -> None:
    pipeline.produce(range(1000), spoil=range(5))
    start_manager(pipeline, Fault(point, "kill"), on_spark=False).killed_itself()
    assert pipeline.catalog.table_exists("lake.raw.t") is exists
    assert not exists or pipeline.ids().total() == rows
    pipeline.produce(range(1000, 1100), spoil=range(5, 8))
    run(pipeline)
    assert_created(pipeline)


def test_two_tables_are_created_and_one_that_joins_begins_where_the_others_are(
    make_pipeline: MakePipeline, start_manager: StartManager
) -> None:
    pipeline = without_tables(make_pipeline, ("db.a", "db.b"))
    pipeline.produce(range(300))
    start_manager(pipeline, Fault("created db.a", "kill"), on_spark=False).killed_itself()
    run(pipeline)
    assert_created(pipeline)
    pipeline.tables = ("db.a", "db.b", "db.c")
    pipeline.produce(range(300, 400))
    run(pipeline)
    assert pipeline.ids("db.a") == pipeline.ids("db.b") == pipeline.sent
    assert pipeline.ids("db.c") == Counter(range(300, 400))


def test_a_table_that_somebody_else_creates_meanwhile_is_used(pipeline: Pipeline) -> None:
    pipeline.produce(range(100))
    record = pa.struct([("id", pa.int64()), ("time", pa.timestamp("us", "UTC"))])

    def interfere(point: str) -> None:
        if point == "creating lake.raw.t":
            NewTable().create(pipeline.catalog, "lake.raw.t", record)

    job = manager(pipeline, interfere)
    try:
        while not (job.tick() and job.progress.lag == 0):
            pass
    finally:
        job.close()
    assert pipeline.table().schema().column_names == ["id", "time"]
    pipeline.check()


def test_two_jobs_that_want_one_table_share_it(make_pipeline: MakePipeline) -> None:
    """Both have seen that it is missing before either creates it."""
    one = without_tables(make_pipeline, ("db.t",))
    other = without_tables(make_pipeline, ("db.t",))
    other.folder = one.folder
    one.produce(range(100))
    other.produce(range(100, 200))
    barrier = threading.Barrier(2, timeout=120)
    failed: list[BaseException] = []

    def work(pipeline: Pipeline) -> None:
        def meet(point: str) -> None:
            if point.startswith("creating"):
                barrier.wait()

        try:
            job = manager(pipeline, meet)
            try:
                while not (job.tick() and job.progress.lag == 0):
                    pass
            finally:
                job.close()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(pipeline,)) for pipeline in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not failed
    assert one.ids() == one.sent + other.sent


def test_a_table_that_was_dropped_is_not_created_again_in_silence(pipeline: Pipeline) -> None:
    pipeline.produce(range(100))
    run(pipeline)
    pipeline.catalog.drop_table("lake.raw.t")
    pipeline.produce(range(100, 150))
    with pytest.raises(LostOffsets, match="no table says how far it is"):
        run(pipeline)
    assert not pipeline.catalog.table_exists("lake.raw.t")
    Hand(pipeline).reset()
    run(pipeline)
    assert_created(pipeline)


def test_records_without_a_field_wait_for_one_that_has_some(pipeline: Pipeline) -> None:
    pipeline.produce([], spoil=range(3))
    job = manager(pipeline)
    try:
        with pytest.raises(Exception, match=r"lake\.raw\.t does not exist, and none of the 3 records"):
            while True:
                job.tick()
    finally:
        job.close()
    assert not pipeline.catalog.table_exists("lake.raw.t")
    pipeline.produce(range(10))
    run(pipeline)
    assert_created(pipeline)


def test_a_partition_by_that_the_records_do_not_allow_fails_the_job_and_creates_nothing(
    make_pipeline: MakePipeline,
) -> None:
    pipeline = make_pipeline((), **CREATES, **{"iceberg.table.t.partition-by": "day(nothing)"})
    pipeline.tables = ("db.t",)
    pipeline.produce(range(10))
    with pytest.raises(ConfigError, match=r"'day\(nothing\)' for iceberg\.table\.t\.partition-by"):
        run(pipeline)
    assert not pipeline.catalog.table_exists("db.t")
    pipeline.catalog.create_table("db.t", SCHEMA)
    run(pipeline)
    pipeline.check()
