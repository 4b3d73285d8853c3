"""Offsets moved by hand: a reset really reads again, an alter really skips, verify knows, and a process that
dies in between leaves a request that can be repeated. Without Spark but for the last test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from icestream.api.errors import BadOffsets, Fenced, LostOffsets, NotReadyError
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets, Partition
from icestream.deadlines import Overdue, lease
from icestream.jobs.offsets.group_offsets import ALTERED, RESET
from icestream.jobs.offsets.sink_offsets import SinkOffsets, sink_offset_store
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import PARTITIONS, SCHEMA, SPEC, Pipeline
from tests.crashes.processes import ROOT
from tests.crashes.without_spark import manager, run, verdicts


class Hand:
    """Somebody who moves offsets."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._admin = SinkOffsets(pipeline.worker)
        self._pipeline = pipeline

    def read(self) -> dict[int, int]:
        entries = self._admin.read(self._pipeline.name, self._pipeline.config)
        assert all(entry.partition["kafka_topic"] == self._pipeline.name for entry in entries)
        return {entry.partition["kafka_partition"]: (entry.offset or {})["kafka_offset"] for entry in entries}

    def alter(self, moves: Mapping[int, int | None]) -> None:
        entries = [
            OffsetEntry(
                {"kafka_topic": self._pipeline.name, "kafka_partition": number},
                None if offset is None else {"kafka_offset": offset},
            )
            for number, offset in moves.items()
        ]
        assert self._admin.alter(self._pipeline.name, self._pipeline.config, entries) == ALTERED

    def reset(self) -> None:
        assert self._admin.reset(self._pipeline.name, self._pipeline.config) == RESET


@pytest.fixture
def hand(pipeline: Pipeline) -> Hand:
    return Hand(pipeline)


def assert_good(pipeline: Pipeline, *lines: str) -> None:
    found = verdicts(pipeline)
    assert [verdict.problems for verdict in found] == [[]] * len(found)
    if lines:
        assert [verdict.line for verdict in found] == list(lines)


def test_a_reset_reads_everything_again_dead_letters_included(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(900), spoil=range(3))
    run(pipeline)
    assert hand.read() == {0: 301, 1: 301, 2: 301}
    hand.reset()
    assert hand.read() == {}
    assert_good(
        pipeline,
        "903 read, 900 in the table, 3 in the dead letter queue. None missing, none too many. "
        "903 not read yet.",
    )
    run(pipeline)
    assert pipeline.ids() == Counter(dict.fromkeys(range(900), 2))
    assert pipeline.dead_letters() == Counter(dict.fromkeys(pipeline.spoiled, 2))
    assert hand.read() == {0: 301, 1: 301, 2: 301}
    assert_good(
        pipeline,
        "1,806 read, 903 of them again by hand, 1,800 in the table, 6 in the dead letter queue. "
        "None missing, none too many.",
    )
    pipeline.produce(range(900, 1000))
    run(pipeline)
    assert pipeline.group_offsets() == pipeline.topics.ends(pipeline.partitions)
    assert_good(pipeline)


def test_an_alter_moves_only_what_it_names_back_and_forth(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.produce(range(300, 600))
    hand.alter({0: 150, 1: 50})
    assert hand.read() == {0: 150, 1: 50, 2: 100}
    run(pipeline)
    # Partition p has the ids p, p + 3, p + 6, …: of 0, fifty are skipped; of 1, fifty come again.
    ids = pipeline.ids()
    assert sorted(number for number in range(600) if number not in ids) == list(range(300, 450, 3))
    assert sorted(number for number, count in ids.items() if count == 2) == list(range(151, 300, 3))
    assert_good(
        pipeline,
        "600 read, 50 of them again by hand, 50 skipped by hand, 600 in the table. "
        "None missing, none too many.",
    )
    hand.alter({0: None})
    assert hand.read() == {1: 200, 2: 200}
    run(pipeline)
    assert pipeline.ids()[300] == 1
    assert_good(pipeline)


def test_a_connector_that_never_ran_can_be_moved(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    hand.reset()
    assert pipeline.table().current_snapshot() is None
    assert hand.read() == {}
    hand.alter({0: 90})
    run(pipeline)
    assert pipeline.ids().total() == 210
    assert_good(pipeline, "210 read, 90 skipped by hand, 210 in the table. None missing, none too many.")


def test_a_job_that_java_left_goes_on_where_it_was_but_for_what_is_moved(
    pipeline: Pipeline, hand: Hand
) -> None:
    from icestream.kafka.group_admin import set_group_offsets

    pipeline.produce(range(300))
    at = Offsets(dict.fromkeys(pipeline.partitions, 60))
    set_group_offsets({"bootstrap.servers": pipeline.bootstrap}, f"connect-{pipeline.name}", at)
    assert hand.read() == {0: 60, 1: 60, 2: 60}
    hand.alter({1: 70})
    assert hand.read() == {0: 60, 1: 70, 2: 60}
    run(pipeline)
    assert pipeline.ids().total() == 40 + 30 + 40
    assert_good(pipeline)


def test_what_the_last_batch_owes_is_paid_before_the_offsets_move(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300), spoil=range(9))

    class Gone(Exception):
        pass

    def leave(point: str) -> None:
        if point == "committed db.t":
            raise Gone

    first = manager(pipeline, leave)
    with pytest.raises(Gone):
        first.tick()
    first.close()
    assert not pipeline.group_offsets()
    hand.reset()
    assert pipeline.dead_letters() == pipeline.spoiled
    run(pipeline)
    assert pipeline.dead_letters() == Counter(dict.fromkeys(pipeline.spoiled, 2))
    assert_good(pipeline)


def test_the_first_batch_after_a_reset_owes_its_dead_letters_like_any_other(
    pipeline: Pipeline, hand: Hand
) -> None:
    pipeline.produce(range(300), spoil=range(9))
    run(pipeline)
    hand.reset()

    class Gone(Exception):
        pass

    def leave(point: str) -> None:
        if point == "committed db.t":
            raise Gone

    first = manager(pipeline, leave)
    with pytest.raises(Gone):
        first.tick()
    first.close()
    run(pipeline)
    assert pipeline.dead_letters() == Counter(dict.fromkeys(pipeline.spoiled, 2))
    assert_good(pipeline)


def test_a_manager_that_still_lives_cannot_undo_a_reset(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.produce(range(300, 600))
    seen: list[str] = []

    def meanwhile(point: str) -> None:
        if point == "staged" and not seen:
            seen.append(point)
            hand.reset()

    zombie = manager(pipeline, meanwhile)
    # Its table refuses the commit, and Kafka tells it that it has been replaced.
    with pytest.raises(Fenced):
        zombie.tick()
    zombie.close()
    assert seen == ["staged"]
    assert pipeline.ids() == Counter(range(300))
    assert hand.read() == {}
    run(pipeline)
    assert pipeline.ids() == Counter([*range(300), *range(600)])
    assert_good(pipeline)


# -- changes and managers at the same time --


def slow_change(
    pipeline: Pipeline,
    at: Mapping[str, Callable[[], object]],
    still_awaited: Callable[[], None] = lambda: None,
) -> Any:
    """Somebody who is slow: what else happens at some point of a change, once."""
    waiting = dict(at)

    def reached(point: str) -> None:
        if point in waiting:
            waiting.pop(point)()

    return sink_offset_store(pipeline.name, pipeline.config, pipeline.worker, reached, still_awaited)


@pytest.mark.parametrize("point", ["settled", "moving db.t", "moved db.t"])
def test_a_slow_change_moves_nothing_after_a_later_one(point: str, pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    # The later one asks for what is there already: it must keep the older one out all the same.
    slow = slow_change(pipeline, {point: lambda: hand.alter({0: 100, 1: 50})})
    with pytest.raises(NotReadyError, match="another change of the offsets"):
        slow.alter({Partition(pipeline.name, 0): 5})
    assert hand.read() == {0: 100, 1: 50, 2: 100}
    assert pipeline.group_offsets() == Offsets(
        {p: {0: 100, 1: 50, 2: 100}[p.number] for p in pipeline.partitions}
    )
    run(pipeline)
    assert_good(pipeline)


def test_a_change_that_nobody_waits_for_any_more_does_not_begin(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    now = [0.0]

    def later() -> None:
        now[0] = 81.0
        hand.alter({0: 10})

    late = slow_change(pipeline, {"opening": later}, lease(80.0, lambda: now[0]))
    with pytest.raises(Overdue):
        late.reset()
    assert hand.read() == {0: 10, 1: 100, 2: 100}


@pytest.mark.parametrize("tables", [("db.t",), ("db.a", "db.b")])
def test_letters_of_a_manager_that_commits_between_settling_and_moving_are_published(
    tables: tuple[str, ...], make_pipeline: MakePipeline
) -> None:
    pipeline = make_pipeline(tables)
    pipeline.produce(range(30))
    run(pipeline)
    pipeline.produce(range(30, 300), spoil=range(9))
    go_on, committed = threading.Event(), threading.Event()

    staged = threading.Event()

    def live_on(point: str) -> None:
        if point == "staged":
            staged.set()
            go_on.wait(60)

    zombie = manager(pipeline, live_on)
    errors: list[BaseException] = []

    def turn() -> None:
        try:
            zombie.tick()
        except BaseException as error:  # told to the test
            errors.append(error)
        committed.set()

    thread = threading.Thread(target=turn)
    thread.start()
    assert staged.wait(60)

    def meanwhile() -> None:
        go_on.set()
        assert committed.wait(60)

    slow_change(pipeline, {"settled": meanwhile}).reset()
    thread.join(60)
    zombie.close()
    assert [type(error) for error in errors] == [Fenced]
    for table in tables:
        assert pipeline.ids(table) == pipeline.sent
    assert pipeline.dead_letters() == pipeline.spoiled
    run(pipeline)
    assert pipeline.dead_letters() == Counter(dict.fromkeys(pipeline.spoiled, 2))
    assert_good(pipeline)


def test_a_topic_that_was_created_anew_is_read_after_a_reset(pipeline: Pipeline, hand: Hand) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.topics.delete(pipeline.name)
    pipeline.topics.create(pipeline.name, PARTITIONS, 1)
    pipeline.produce(range(300, 360))
    with pytest.raises(BadOffsets, match="reset the connector's offsets"):
        hand.alter({0: 0})
    hand.reset()
    run(pipeline)
    assert pipeline.ids() == Counter(range(360))
    assert_good(pipeline, "360 read, 360 in the table. None missing, none too many.")


def test_a_table_that_was_dropped_and_made_again_is_filled_after_a_reset(
    pipeline: Pipeline, hand: Hand
) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    pipeline.catalog.drop_table("db.t")
    pipeline.catalog.create_table("db.t", SCHEMA, partition_spec=SPEC)
    with pytest.raises(LostOffsets, match="reset the connector's offsets"):
        run(pipeline)
    with pytest.raises(BadOffsets, match="reset the connector's offsets"):
        hand.alter({0: 5})
    hand.reset()
    run(pipeline)
    assert pipeline.ids() == Counter(range(300))
    assert_good(pipeline, "300 in the topic, 300 in the table. None missing, none twice.")


@pytest.mark.parametrize(
    ("moves", "why"),
    [
        ({0: 101}, r"offset 101 of topic '.*', partition 0 is not in the topic, which has 0\.\.100"),
        ({0: -1}, "offset -1"),
        ({7: 0}, r"has no partition 7; it has 0\.\.2"),
    ],
)
def test_an_offset_that_cannot_be_is_refused_and_nothing_changes(
    moves: dict[int, int], why: str, pipeline: Pipeline, hand: Hand
) -> None:
    pipeline.produce(range(300))
    run(pipeline)
    snapshot = pipeline.table().current_snapshot()
    with pytest.raises(BadOffsets, match=why):
        hand.alter({1: 3, **moves})
    assert pipeline.table().current_snapshot() == snapshot
    assert hand.read() == {0: 100, 1: 100, 2: 100}


# -- crashes --


def killed(pipeline: Pipeline, point: str, moves: Mapping[int, int | None] | None) -> None:
    spec = pipeline.folder / "offsets.json"
    asked = None if moves is None else [[pipeline.name, number, at] for number, at in moves.items()]
    content = {
        "name": pipeline.name,
        "config": pipeline.config,
        "worker": pipeline.worker,
        "moves": asked,
        "point": point,
    }
    spec.write_text(json.dumps(content))
    command = [sys.executable, "-m", "tests.crashes.offsets_process", str(spec)]
    assert subprocess.run(command, cwd=ROOT, timeout=300).returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["moved db.a", "moved db.b", "published"])
@pytest.mark.parametrize("is_reset", [True, False])
def test_a_change_that_was_killed_can_be_repeated(
    point: str, is_reset: bool, make_pipeline: MakePipeline
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    hand = Hand(pipeline)
    pipeline.produce(range(300), spoil=range(3))
    run(pipeline)
    moves: Mapping[int, int | None] = {0: 51, 1: 101, 2: None}
    killed(pipeline, point, None if is_reset else moves)
    if is_reset:
        hand.reset()
        assert hand.read() == {}
    else:
        hand.alter(moves)
        assert hand.read() == {0: 51, 1: 101}
    run(pipeline)
    again = 303 if is_reset else 50 + 0 + 101
    for table in pipeline.tables:
        assert pipeline.ids(table).total() + pipeline.dead_letters().total() == 303 + again
    assert_good(pipeline)


def test_a_change_that_was_killed_and_is_not_repeated_leaves_each_table_right(
    make_pipeline: MakePipeline,
) -> None:
    pipeline = make_pipeline(("db.a", "db.b"))
    pipeline.produce(range(300))
    run(pipeline)
    killed(pipeline, "moved db.a", None)
    pipeline.produce(range(300, 360))
    run(pipeline)
    assert pipeline.ids("db.a") == Counter([*range(300), *range(360)])
    assert pipeline.ids("db.b") == Counter(range(360))
    assert_good(
        pipeline,
        "660 read, 300 of them again by hand, 660 in the table. None missing, none too many.",
        "360 in the topic, 360 in the table. None missing, none twice.",
    )


def test_end_to_end_on_spark(pipeline: Pipeline, hand: Hand, spark: SparkPlane) -> None:
    pipeline.produce(range(1000))
    pipeline.drain(spark)
    hand.reset()
    pipeline.drain(spark)
    assert pipeline.ids() == Counter(dict.fromkeys(range(1000), 2))
    pipeline.produce(range(1000, 1600))
    stands = hand.read()
    hand.alter({0: stands[0] + 100})
    pipeline.drain(spark)
    assert pipeline.ids().total() == 2000 + 500
    assert_good(
        pipeline,
        "2,500 read, 1,000 of them again by hand, 100 skipped by hand, 2,500 in the table. "
        "None missing, none too many.",
    )
