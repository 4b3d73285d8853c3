"""Jobs that route: each record is in the tables that it is for once, whatever dies, and a table without rows
is not committed. Without Spark; `tests/integration/test_routing.py` has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.table import FILTERED_BY
from icestream.kafka.group_admin import delete_group
from tests.crashes.conftest import MakePipeline, StartManager
from tests.crashes.pipeline import PARTITIONS, SCHEMA, SPEC, Pipeline, assert_same
from tests.crashes.processes import Fault
from tests.crashes.test_moved_offsets import Hand
from tests.crashes.test_several_tables import die_at
from tests.crashes.without_spark import run, verdicts

BY_PATTERN = {
    "iceberg.tables.route-field": "bucket",
    "iceberg.table.db.a.route-regex": "b[01]",
    "iceberg.table.db.b.route-regex": "b(1|2)",
}
"""Of the buckets b0 to b3: the second is for both tables, the last for none."""
BY_TEMPLATE = {"iceberg.tables": "", "iceberg.tables.route-template": "db.${value.bucket}"}


def bucket(number: int) -> int:
    return number % 4


@dataclass
class Routed:
    """A pipeline, and the buckets that each of its tables gets."""

    pipeline: Pipeline
    buckets: Mapping[str, set[int]]
    absent: frozenset[int] = frozenset()

    def wanted(self, table: str) -> Counter[int]:
        return Counter({n: c for n, c in self.pipeline.sent.items() if bucket(n) in self.buckets[table]})

    def check(self) -> None:
        for table in self.buckets:
            assert_same(self.pipeline.ids(table), self.wanted(table), table)
        letters = self.pipeline.dead_letters()
        lost = sum(count for n, count in self.pipeline.sent.items() if bucket(n) in self.absent)
        assert letters.total() == self.pipeline.spoiled.total() + lost
        assert not self.pipeline.spoiled - letters
        assert self.pipeline.group_offsets() == self.pipeline.topics.ends(self.pipeline.partitions)

    def commits(self, table: str) -> int:
        return len(self.pipeline.table(table).snapshots())


@pytest.fixture
def by_pattern(make_pipeline: MakePipeline) -> Routed:
    return Routed(make_pipeline(("db.a", "db.b"), **BY_PATTERN), {"db.a": {0, 1}, "db.b": {1, 2}})


@pytest.fixture
def by_template(make_pipeline: MakePipeline) -> Routed:
    """The table of the last bucket does not exist."""
    tables = ("db.b0", "db.b1", "db.b2")
    buckets = {table: {number} for number, table in enumerate(tables)}
    return Routed(make_pipeline(tables, **BY_TEMPLATE), buckets, frozenset({3}))


def test_records_go_to_the_tables_whose_pattern_they_match(by_pattern: Routed) -> None:
    pipeline = by_pattern.pipeline
    pipeline.produce(range(400), spoil=range(3))
    run(pipeline)
    by_pattern.check()
    snapshot = pipeline.table("db.a").current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert snapshot.summary.additional_properties[FILTERED_BY] == "route-field:100"
    # Nothing of the next batch is for the second table.
    before = by_pattern.commits("db.a"), by_pattern.commits("db.b")
    pipeline.produce(range(400, 800, 4))
    run(pipeline)
    by_pattern.check()
    assert (by_pattern.commits("db.a"), by_pattern.commits("db.b")) == (before[0] + 1, before[1])


def test_records_that_match_no_pattern_can_be_rejected(make_pipeline: MakePipeline) -> None:
    options = {**BY_PATTERN, "iceberg.tables.route-unmatched": "reject"}
    pipeline = make_pipeline(("db.a", "db.b"), **options)
    routed = Routed(pipeline, {"db.a": {0, 1}, "db.b": {1, 2}}, frozenset({3}))
    pipeline.produce(range(40))
    run(pipeline)
    routed.check()


def test_the_table_may_be_made_of_a_template_and_must_exist(by_template: Routed) -> None:
    pipeline = by_template.pipeline
    pipeline.produce(range(400), spoil=range(3))
    run(pipeline)
    by_template.check()
    pipeline.catalog.create_table("db.b3", SCHEMA, partition_spec=SPEC)
    more = Routed(pipeline, {"db.b3": {3}})
    pipeline.produce(range(400, 500))
    run(pipeline)
    assert pipeline.ids("db.b3") == Counter(n for n in range(400, 500) if bucket(n) == 3)
    assert more.commits("db.b3") == 1


class Named(Pipeline):
    """Its records name their table, in capitals, in a struct."""

    def send(self, producer: Producer, number: int, value: bytes) -> None:
        route = b',"route":{"table":"DB.B%d"}}' % bucket(number)
        super().send(producer, number, value[:-1] + route if value.endswith(b"}") else value)


def test_the_table_may_be_named_by_the_record(make_pipeline: MakePipeline) -> None:
    options = {
        "iceberg.tables": "",
        "iceberg.tables.dynamic-enabled": "true",
        "iceberg.tables.route-field": "route.table",
    }
    made = make_pipeline(("db.b0", "db.b1", "db.b2"), **options)
    pipeline = Named(made.bootstrap, made.folder, made.name, made.tables, made.options)
    routed = Routed(pipeline, {f"db.b{number}": {number} for number in range(3)}, frozenset({3}))
    pipeline.produce(range(400), spoil=range(3))
    run(pipeline)
    routed.check()


POINTS = ["committed db.b0", "committed db.b1", "discovering", "closing"]
ALL_POINTS = [
    *("planned", "committed db.b0", "staged", "committed db.b1", "discovering", "sending", "accepted"),
    *("committed db.b2", "closing", "closed", "published"),
]


@pytest.mark.parametrize(
    "points", [POINTS, pytest.param(ALL_POINTS, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_a_manager_killed_at_any_point_loses_and_repeats_nothing(
    points: Sequence[str], by_template: Routed, start_manager: StartManager
) -> None:
    pipeline = by_template.pipeline
    for number, point in enumerate(points):
        # The second table gets rows in every other batch only.
        ids = [n for n in range(number * 300, number * 300 + 300) if number % 2 or bucket(n) != 1]
        pipeline.produce(ids, spoil=range(number * 3, number * 3 + 3))
        start_manager(pipeline, Fault(point, "kill"), on_spark=False).killed_itself()
    run(pipeline)
    by_template.check()


def roll_back(pipeline: Pipeline, table: str, by: int) -> None:
    found = pipeline.table(table)
    snapshots = found.snapshots()
    found.manage_snapshots().rollback_to_snapshot(snapshots[-1 - by].snapshot_id).commit()


def test_a_table_that_is_rolled_back_gets_its_rows_again_and_the_others_nothing(by_template: Routed) -> None:
    pipeline = by_template.pipeline
    for number in range(3):
        pipeline.produce(range(number * 300, number * 300 + 300), spoil=[number])
        run(pipeline)
    others = by_template.commits("db.b0")
    roll_back(pipeline, "db.b1", 2)
    assert pipeline.ids("db.b1").total() == 75
    pipeline.produce([1201])
    # It dies when some of the rows are there again.
    limited = Pipeline(
        pipeline.bootstrap,
        pipeline.folder,
        pipeline.name,
        pipeline.tables,
        {**pipeline.options, "icestream.commit.rows": "90"},
        pipeline.sent,
        pipeline.spoiled,
    )
    die_at(limited, "committed db.b1")
    run(limited)
    by_template.check()
    assert by_template.commits("db.b0") == others


def test_a_lost_group_is_found_again_by_the_tables(by_template: Routed) -> None:
    pipeline = by_template.pipeline
    late = {**pipeline.options, "consumer.override.auto.offset.reset": "latest"}
    for number in range(2):
        pipeline.produce(range(number * 300, number * 300 + 300), spoil=[number])
        run(pipeline)
    delete_group({"bootstrap.servers": pipeline.bootstrap}, f"connect-{pipeline.name}")
    pipeline.options = late
    pipeline.produce(range(600, 700))
    run(pipeline)
    by_template.check()


def test_a_table_that_only_gets_rows_late_begins_there(by_template: Routed) -> None:
    pipeline = by_template.pipeline
    pipeline.produce([n for n in range(300) if bucket(n) == 0])
    run(pipeline)
    assert by_template.commits("db.b1") == 0
    pipeline.produce(range(300, 600))
    die_at(pipeline, "committed db.b1")
    run(pipeline)
    by_template.check()
    assert len(pipeline.partitions) == PARTITIONS


def test_a_topic_that_names_no_end_of_tables_stops_its_job(make_pipeline: MakePipeline) -> None:
    options = {
        "iceberg.tables": "",
        "iceberg.tables.route-template": "db.t_${value.id}",
        "iceberg.tables.route-max-tables": "50",
    }
    pipeline = make_pipeline((), **options)
    pipeline.produce(range(49))
    run(pipeline)
    assert pipeline.dead_letters().total() == 49
    pipeline.produce(range(100, 300))
    with pytest.raises(FatalError, match=r"name more than 50 tables.*iceberg\.tables\.route-max-tables"):
        run(pipeline)


def test_offsets_moved_by_hand_move_every_table(by_template: Routed) -> None:
    pipeline, hand = by_template.pipeline, Hand(by_template.pipeline)
    pipeline.produce(range(300), spoil=[0])
    run(pipeline)
    # The table of bucket 1 has nothing of these, and is moved as well.
    pipeline.produce([n for n in range(300, 600) if bucket(n) != 1])
    run(pipeline)
    assert hand.read() == {p.number: at for p, at in pipeline.group_offsets().positions.items()}
    hand.alter({0: 50, 1: 150})
    run(pipeline)
    # Partition p has the ids p, p + 3, …: those of 0 from the 50th on come again.
    again = pipeline.ids("db.b1")
    assert {n for n, count in again.items() if count == 2} == {
        n for n in range(150, 300, 3) if bucket(n) == 1
    }
    hand.reset()
    run(pipeline)
    assert pipeline.ids("db.b1")[1] == 2
    assert pipeline.ids("db.b1")[153] == 3


def test_verify_tells_what_is_in_which_table(by_pattern: Routed) -> None:
    pipeline = by_pattern.pipeline
    pipeline.options = {**pipeline.options, "errors.deadletterqueue.context.headers.enable": "true"}
    pipeline.produce(range(40), spoil=range(3))
    run(pipeline)
    pipeline.produce(range(40, 60, 4))
    run(pipeline)
    found = verdicts(pipeline)
    assert not any(one.problems for one in found)
    assert [one.line for one in found] == [
        "25 for this table, 25 in the table. None missing, none twice.",
        "20 for this table, 20 in the table. None missing, none twice.",
        "48 in the topic, 35 in a table, 3 in the dead letter queue, 10 in neither.",
    ]
    roll_back(pipeline, "db.a", 1)
    assert verdicts(pipeline)[2].line.endswith("15 in neither.")
    run(pipeline)
    by_pattern.check()
    assert verdicts(pipeline)[2].line.endswith("10 in neither.")
