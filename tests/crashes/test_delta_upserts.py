"""Upserts into Delta tables: the table is what a dict of the same changes is, whatever dies in between, and
whoever writes. The batches run in the process itself: a merge needs no Spark."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from icestream.connectors.delta.sink import table_from
from icestream.connectors.delta.table import DeltaSinkTable
from icestream.connectors.delta.upserts.merge import Merge
from icestream.embedded.kafka import Broker
from tests.crashes import without_spark
from tests.crashes.pipeline import PARTITIONS, drain
from tests.crashes.processes import Fault, JobProcess
from tests.crashes.upserts import Change, Row, UpsertPipeline, random_changes
from tests.crashes.without_spark import verdicts
from tests.long_form import sized

_NUMBERS = itertools.count(1)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("region", pa.string()),
        pa.field("amount", pa.int64(), nullable=False),
    ]
)


@dataclass
class DeltaUpserts(UpsertPipeline):
    @property
    def config(self) -> dict[str, str]:
        return {
            "name": self.name,
            "connector.class": "DeltaSinkConnector",
            "topics": self.name,
            "tasks.max": "2",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "delta.tables": "db.t",
            "delta.location": str(self.folder),
            "delta.tables.cdc-field": "op",
            "delta.table.db.t.id-columns": "id",
            "delta.control.commit.interval-ms": "100",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": self.dead_letter_topic,
            "errors.deadletterqueue.topic.replication.factor": "1",
            **self.options,
        }

    @property
    def place(self) -> str:
        return str(self.folder / "db" / "t")

    def create(self) -> DeltaUpserts:
        self.topics.create(self.name, PARTITIONS, 1)
        DeltaTable.create(self.place, SCHEMA, partition_by=["region"])
        return self

    def run(self) -> None:
        without_spark.run(self)

    def rows(self) -> list[Row]:
        found = DeltaTable(self.place).to_pyarrow_table().select(["id", "region", "amount"])
        return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def staged_files(self) -> list[Path]:
        return list(Path(self.place).rglob("*.changes"))


MakeUpserts = Callable[..., DeltaUpserts]


@pytest.fixture
def make_upserts(broker: Broker, tmp_path: Path) -> MakeUpserts:
    def make(**options: str) -> DeltaUpserts:
        name = f"delta-upsert-{next(_NUMBERS)}"
        return DeltaUpserts(broker.bootstrap, tmp_path / name, name, options=options).create()

    return make


class Killed(BaseException):
    """A manager that ends here and now; nothing of it catches this."""


POINTS = ("staged", "merged", "sent", "committed db.t", "published")


class Steps:
    """Tells of the steps inside of a commit to one listener at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached: Callable[[str], None] = lambda point: None
        for owner, method, point in ((Merge, "run", "merged"), (DeltaSinkTable, "_send", "sent")):
            monkeypatch.setattr(owner, method, self._telling(getattr(owner, method), point))

    def _telling(self, method: Callable[..., Any], point: str) -> Callable[..., Any]:
        def tell(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **named)
            self.reached(point)
            return answer

        return tell


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def killed_at(pipeline: DeltaUpserts, steps: Steps, point: str) -> None:
    """Run the job until a point, and leave everything as it is then."""

    def reached(now: str) -> None:
        if now == point:
            steps.reached = lambda point: None
            raise Killed

    steps.reached = reached
    manager = without_spark.manager(pipeline, reached)
    with pytest.raises(Killed):
        while True:
            time.sleep(manager.tick())
    manager.close()


@pytest.mark.parametrize("batches", sized(6, 200))
def test_the_table_is_what_a_dict_is_after_random_batches_and_kills(
    make_upserts: MakeUpserts, steps: Steps, batches: int
) -> None:
    rng = random.Random(f"delta upserts {batches}")
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1), Change(2, "r", "a", 2), Change(1, "u", "b", 11), Change(9, "d")])
    points = itertools.cycle(rng.sample(POINTS, len(POINTS)))
    for number in range(batches):
        pipeline.change(random_changes(rng, 60, rng.choice([1, 20, 300])))
        if number % 3 != 2:
            killed_at(pipeline, steps, next(points))
        pipeline.run()
        pipeline.check()
    # What the last commit left behind is swept after the next.
    pipeline.change(random_changes(rng, 60, 20))
    pipeline.run()
    pipeline.check()
    table = table_from("db.t", pipeline.name, pipeline.config)
    last = table.found().checkpoint
    assert last is not None
    table.sweep(last.commit, dt.datetime.now(dt.UTC) + dt.timedelta(hours=3))
    assert not pipeline.staged_files(), "changes that were merged are removed, those of dead batches swept"
    (verdict,) = verdicts(pipeline)
    assert not verdict.problems and any("cannot be counted" in one for one in verdict.unknown)


def test_appends_of_others_are_kept_and_the_merge_runs_again(make_upserts: MakeUpserts, steps: Steps) -> None:
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1)])
    pipeline.run()
    merges = 0

    def append_once(point: str) -> None:
        nonlocal merges
        merges += point == "merged"
        if point == "merged" and merges == 1:
            foreign = pa.table({"id": [1000, 2], "region": ["z", "z"], "amount": [5, 6]}, schema=SCHEMA)
            write_deltalake(pipeline.place, foreign, mode="append")

    steps.reached = append_once
    pipeline.model[1000] = (1000, "z", 5)
    # The foreign row of key 2 was there when the changes were merged the second time.
    pipeline.change([Change(1, "u", "b", 2), Change(2, "c", "b", 2)])
    pipeline.run()
    assert merges == 2
    pipeline.check()


def test_a_truncate_removes_what_was_before_it(make_upserts: MakeUpserts) -> None:
    pipeline = make_upserts()
    pipeline.change(Change(id_, "c", "a", id_) for id_ in range(30))
    pipeline.run()
    pipeline.check()
    # In one partition, so that its offsets tell what was before.
    pipeline.change([Change(0, "u", "b", 1), Change(3, "u", "b", 1), Change(6, "t"), Change(3, "c", "c", 7)])
    pipeline.model = {3: (3, "c", 7)}
    pipeline.run()
    pipeline.check()
    pipeline.change([Change(3, "t")])
    pipeline.model = {}
    pipeline.run()
    pipeline.check()


def test_upserts_without_a_field_for_the_kind_of_change(make_upserts: MakeUpserts) -> None:
    """`delta.tables.upsert-mode-enabled` with columns that are added on the way."""
    options = {
        "delta.tables.cdc-field": "",
        "delta.tables.upsert-mode-enabled": "true",
        "delta.tables.evolve-schema-enabled": "true",
    }
    pipeline = make_upserts(**options)
    pipeline.change([Change(1, "c", "a", 1), Change(2, "c", "a", 2), Change(2, None), Change(1, "u", "a", 3)])
    pipeline.run()
    pipeline.check()
    assert DeltaTable(pipeline.place).to_pyarrow_table()["op"].to_pylist() == ["u"]


def test_records_that_name_no_row_are_dead_letters(make_upserts: MakeUpserts) -> None:
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1)])
    bad = [b'{"id":null,"op":"u","amount":1}', b'{"id":7,"op":"x","amount":1}', b'{"id":8,"op":"u"}']
    pipeline.send_bad([(value, b'{"id":1}') for value in bad])
    pipeline.send_bad([(None, None), (None, b'{"other":1}')])
    pipeline.run()
    pipeline.check()
    assert sorted(pipeline.dead_letters().elements()) == sorted([b"", b"", *bad])


def test_a_manager_that_should_be_dead_merges_nothing(make_upserts: MakeUpserts, steps: Steps) -> None:
    """It has merged, and while it was away its successor has done the same batch and the next."""
    pipeline = make_upserts()
    pipeline.change(random_changes(random.Random(1), 40, 100))
    stale = without_spark.manager(pipeline)

    def take_over(point: str) -> None:
        if point == "merged":
            steps.reached = lambda point: None
            pipeline.run()
            pipeline.change(random_changes(random.Random(2), 40, 100))
            pipeline.run()

    steps.reached = take_over
    with pytest.raises(Exception) as refused:  # it is fenced, or told that others have committed
        for _ in range(20):
            time.sleep(stale.tick())
    assert not isinstance(refused.value, AssertionError)
    stale.close()
    pipeline.check()
    pipeline.change(random_changes(random.Random(3), 40, 100))
    pipeline.run()
    pipeline.check()


@pytest.fixture
def processes() -> Iterator[list[JobProcess]]:
    started: list[JobProcess] = []
    yield started
    for process in started:
        process.kill()


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("staged", marks=pytest.mark.long),
        "sending",
        "accepted",
        pytest.param("committed", marks=pytest.mark.long),
        pytest.param("closing", marks=pytest.mark.long),
    ],
)
def test_a_manager_killed_in_mid_upsert_loses_and_repeats_nothing(
    make_upserts: MakeUpserts, processes: list[JobProcess], tmp_path: Path, point: str
) -> None:
    pipeline = make_upserts()
    pipeline.change(random_changes(random.Random(3), 40, 200))
    spec = tmp_path / "job.json"
    content = {"name": pipeline.name, "config": pipeline.config, "worker": pipeline.worker}
    fault = Fault(point, "kill", 1)
    spec.write_text(json.dumps({**content, "faults": [[fault.point, fault.action, fault.turn]]}))
    process = JobProcess(tmp_path / "job.log", ["-m", "tests.crashes.sink_process", str(spec)])
    processes.append(process)
    process.wait(lambda: True if process.process.poll() == -9 else None, "it did not kill itself")
    pipeline.change(random_changes(random.Random(4), 40, 100))
    pipeline.run()
    pipeline.check()


def test_the_job_maintains_its_table_between_two_merges(make_upserts: MakeUpserts) -> None:
    options = {
        "icestream.maintenance.enabled": "true",
        "icestream.maintenance.commits": "1",
        "icestream.maintenance.compaction.min-files": "2",
    }
    pipeline = make_upserts(**options)
    manager = without_spark.manager(pipeline)
    for number in range(4):
        # Other keys each time: a merge itself writes files that it touches again as one.
        pipeline.change(Change(number * 10 + one, "c", "a", one) for one in range(3))
        drain(manager)
    manager.close()
    pipeline.check()
    table = DeltaTable(pipeline.place)
    assert any(entry.get("icestream.maintenance") == "compaction" for entry in table.history())
    assert len(table.file_uris()) < 4
    (verdict,) = verdicts(pipeline)
    assert not verdict.problems


def test_topics_that_choose_their_tables_get_their_own_changes(make_upserts: MakeUpserts) -> None:
    """Tables that are created on the way, with the id columns of all; a tombstone deletes by its topic."""
    pipeline = make_upserts(
        **{
            "delta.tables": "",
            "delta.tables.route-template": "db.${topic}",
            "delta.tables.auto-create-enabled": "true",
            "delta.tables.default-id-columns": "id",
            "delta.table.db.t.id-columns": "",
        }
    )
    pipeline.change(random_changes(random.Random(8), 20, 100))
    pipeline.run()
    pipeline.change([Change(3, "c", "a", 3), Change(4, "c", "a", 4), Change(3, None), Change(4, "u", "b", 5)])
    pipeline.run()
    table = DeltaTable(str(pipeline.folder / "db" / pipeline.name)).to_pyarrow_table()
    names = ("id", "region", "amount")
    found = sorted(zip(*(table[name].to_pylist() for name in names), strict=True))
    assert found == sorted(pipeline.model.values())
