"""Tables have ids: one that joins, one that missed its first batch and one that was dropped differ."""

from __future__ import annotations

from collections import Counter

import pytest

from icestream.api.errors import LostOffsets
from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import SCHEMA, SPEC, Pipeline
from tests.crashes.test_moved_offsets import Hand, assert_good, manager, run


class Gone(Exception):
    pass


def die_at(pipeline: Pipeline, point: str) -> None:
    """Run the job up to a point, and leave it as a crash would."""

    def leave(reached: str) -> None:
        if reached == point:
            raise Gone

    job = manager(pipeline, leave)
    with pytest.raises(Gone):
        while True:
            job.tick()
    job.close()


def join(pipeline: Pipeline, table: str) -> None:
    pipeline.catalog.create_table(table, SCHEMA, partition_spec=SPEC)
    pipeline.tables = (*pipeline.tables, table)


@pytest.mark.parametrize("batches_before", [0, 1])
def test_a_table_that_is_added_while_a_batch_is_owed_loses_none_of_its_dead_letters(
    batches_before: int, make_pipeline: MakePipeline
) -> None:
    pipeline = make_pipeline(("db.a",))
    for number in range(batches_before):
        pipeline.produce(range(number * 30, number * 30 + 30))
        run(pipeline)
    pipeline.produce(range(300, 600), spoil=range(9))
    die_at(pipeline, "committed db.a")
    join(pipeline, "db.b")
    pipeline.produce(range(600, 900), spoil=range(9, 12))
    run(pipeline)
    assert pipeline.dead_letters() == pipeline.spoiled
    assert pipeline.ids("db.a") == pipeline.sent
    assert pipeline.ids("db.b") == Counter(range(600, 900))


def test_a_table_that_missed_its_first_batch_gets_it(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline(("db.a",))
    pipeline.produce(range(300))
    run(pipeline)
    join(pipeline, "db.b")
    pipeline.produce(range(300, 600), spoil=range(9))
    die_at(pipeline, "committed db.a")
    pipeline.produce(range(600, 660))
    run(pipeline)
    assert pipeline.dead_letters() == pipeline.spoiled
    assert pipeline.ids("db.a") == pipeline.sent
    assert pipeline.ids("db.b") == Counter(range(300, 660))


def test_one_of_two_tables_that_is_dropped_and_created_anew_stops_the_job(
    make_pipeline: MakePipeline,
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    pipeline.produce(range(600))
    run(pipeline)
    pipeline.catalog.drop_table("db.b")
    pipeline.catalog.create_table("db.b", SCHEMA, partition_spec=SPEC)
    pipeline.produce(range(600, 900))
    with pytest.raises(LostOffsets, match=r"table 'db\.b' was dropped and created again"):
        run(pipeline)
    assert pipeline.table("db.b").current_snapshot() is None
    assert pipeline.ids("db.a") == Counter(range(600))
    Hand(pipeline).reset()
    run(pipeline)
    assert pipeline.ids("db.b") == pipeline.sent
    assert_good(pipeline)


def test_a_table_that_was_created_anew_begins_where_the_others_are_if_it_is_taken_out_and_added_again(
    make_pipeline: MakePipeline,
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.catalog.drop_table("db.b")
    pipeline.tables = ("db.a",)
    pipeline.produce(range(300, 360))
    run(pipeline)
    join(pipeline, "db.b")
    pipeline.produce(range(360, 600))
    run(pipeline)
    assert pipeline.ids("db.a") == pipeline.sent
    assert pipeline.ids("db.b") == Counter(range(360, 600))
