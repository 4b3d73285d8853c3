"""The compare-and-set of a commit, without Kafka and Spark: what happens between our check and the catalog's.

PyIceberg retries a lost race by itself. That it asks our check again before each retry is a private hook of
the pinned version: these tests fail when it is gone.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ValidationException

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict, CommitUnknown
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import Commit, Receipt
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins
from tests.crashes.pipeline import SCHEMA, SPEC
from tests.crashes.rest_catalog import SilentCatalog
from tests.crashes.test_foreign_writers import rows

TOPIC = Partition("t", 0)


@dataclass(frozen=True)
class Writer:
    """One manager's view of the table."""

    table: IcebergTable
    catalog: Catalog

    def commit(self, start: int, until: int) -> Receipt:
        batch = Batch(f"{id(self)}-{start}", Offsets({TOPIC: start}), Offsets({TOPIC: until}))
        found = self.table.found()
        return self.send(batch, found.checkpoint)

    def send(self, batch: Batch, before: Checkpoint | None) -> Receipt:
        start, until = batch.start[TOPIC], batch.end[TOPIC]
        counts = {TOPIC: Counts(read=until - start, written=until - start)}
        plan = self.table.plan({})
        checkpoint = checkpoint_after(before, batch, counts, TopicIds("cluster", {"t": "id"}))
        return self.table.commit(Commit(checkpoint, before, plan, Staged(self.stage(start, until))))

    def stage(self, start: int, until: int) -> list[StagedFile]:
        writer = StageWriter(self.table.plan({}))
        origins = RowOrigins([TOPIC], np.zeros(until - start, np.int64), np.arange(start, until))
        writer.write(rows(start, until).cast(self.table.plan({}).arrow_schema), origins)
        return writer.close()

    def before_sending(self, act: Callable[[], object]) -> None:
        """Act once, when our check is over and the catalog has not been asked yet."""
        commit_table = self.catalog.commit_table

        def late(*arguments: object) -> object:
            self.catalog.__dict__.pop("commit_table")
            act()
            return commit_table(*arguments)  # type: ignore[arg-type]

        self.catalog.__dict__["commit_table"] = late

    def ids(self) -> Counter[int]:
        return Counter(self.catalog.load_table("db.t").scan().to_arrow().column("id").to_pylist())


@pytest.fixture
def make_writer(tmp_path: Path) -> Callable[[str], Writer]:
    def make(job: str = "job") -> Writer:
        catalog = open_catalog(
            {
                "iceberg.catalog.type": "jdbc",
                "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
                "iceberg.catalog.warehouse": f"file://{tmp_path}",
            }
        )
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table_if_not_exists("db.t", SCHEMA, partition_spec=SPEC)
        return Writer(IcebergTable(catalog, "db.t", job, write_props={}), catalog)

    return make


@pytest.mark.parametrize("first", [0, 100])
def test_a_commit_of_the_same_job_in_between_is_a_conflict(
    first: int, make_writer: Callable[..., Writer]
) -> None:
    ours, theirs = make_writer(), make_writer()
    if first:
        ours.commit(0, first)
    ours.before_sending(lambda: theirs.commit(first, 200))
    with pytest.raises(CommitConflict, match="somebody else"):
        ours.commit(first, 200)
    assert ours.ids() == Counter(range(200))
    checkpoint = ours.table.found().checkpoint
    assert checkpoint is not None
    assert checkpoint.commit == f"{id(theirs)}-{first}"


def test_a_commit_of_another_job_in_between_is_none(make_writer: Callable[..., Writer]) -> None:
    ours, theirs = make_writer(), make_writer("other")
    ours.before_sending(lambda: theirs.commit(1000, 1100))
    ours.commit(0, 100)
    assert ours.ids() == Counter([*range(100), *range(1000, 1100)])
    assert ours.table.found().offsets == Offsets({TOPIC: 100})
    assert theirs.table.found().offsets == Offsets({TOPIC: 1100})


def test_many_managers_of_one_job_at_once_land_every_batch_once(make_writer: Callable[..., Writer]) -> None:
    def race(writer: Writer) -> None:
        while (stands := writer.table.found()).offsets.get(TOPIC) != 1000:
            start = stands.offsets.get(TOPIC) or 0
            batch = Batch(f"{start}", Offsets({TOPIC: start}), Offsets({TOPIC: start + 100}))
            try:
                writer.send(batch, stands.checkpoint)
            except CommitConflict:
                continue

    managers = [threading.Thread(target=race, args=[make_writer()]) for _ in range(3)]
    for manager in managers:
        manager.start()
    for manager in managers:
        manager.join(240)
    assert make_writer().ids() == Counter(range(1000))


def test_an_outcome_that_nobody_can_tell_is_neither_success_nor_conflict(
    make_writer: Callable[..., Writer],
) -> None:
    ours = make_writer()

    def away() -> None:
        def no_answer(*arguments: object) -> object:
            raise OSError("connection reset")

        ours.catalog.__dict__["load_table"] = no_answer
        raise OSError("connection reset")

    ours.before_sending(away)
    with pytest.raises(CommitUnknown, match="may have landed"):
        ours.commit(0, 100)
    ours.catalog.__dict__.pop("load_table")
    assert ours.table.found().offsets == NOTHING


@pytest.mark.parametrize("after", ["nobody", "another job", "the same job"])
def test_a_commit_that_landed_and_was_refused_has_landed(
    after: str, make_writer: Callable[..., Writer]
) -> None:
    """As when a proxy repeats the request and hands on the answer to the second."""
    ours, theirs = make_writer(), make_writer("other" if after == "another job" else "job")
    # The first attempt is the last.
    with ours.catalog.load_table("db.t").transaction() as change:
        change.set_properties({"commit.retry.num-retries": "0"})

    def repeated(*arguments: object) -> object:
        ours.catalog.__dict__.pop("commit_table")
        ours.catalog.commit_table(*arguments)  # type: ignore[arg-type]
        if after != "nobody":
            theirs.commit(100, 150)
        return ours.catalog.commit_table(*arguments)  # type: ignore[arg-type]

    ours.catalog.__dict__["commit_table"] = repeated
    receipt = ours.commit(0, 100)
    assert receipt.id is not None
    assert receipt.checkpoint is not None
    assert ours.ids() == Counter(range(100 if after == "nobody" else 150)), "its manifests are still there"


def test_what_was_refused_and_did_not_land_is_removed(
    make_writer: Callable[..., Writer], tmp_path: Path
) -> None:
    ours, theirs = make_writer(), make_writer()
    ours.before_sending(lambda: theirs.commit(0, 200))
    before = {*tmp_path.rglob("*.avro")}
    with pytest.raises(CommitConflict) as conflict:
        ours.commit(0, 200)
    assert conflict.value.certain
    snapshots = len(ours.catalog.load_table("db.t").snapshots())
    added = {*tmp_path.rglob("*.avro")} - before
    assert len(added) == 2 * snapshots, "a manifest and a list for what landed, nothing of what did not"


def test_nothing_is_removed_while_the_table_cannot_be_asked(
    make_writer: Callable[..., Writer], tmp_path: Path
) -> None:
    ours = make_writer()

    def away() -> None:
        def no_answer(*arguments: object) -> object:
            raise OSError("connection reset")

        ours.catalog.__dict__["load_table"] = no_answer
        raise ValidationException("refused")

    ours.before_sending(away)
    with pytest.raises(CommitUnknown):
        ours.commit(0, 100)
    assert len([*tmp_path.rglob("*.avro")]) == 2


def test_a_commit_that_a_rest_catalog_takes_and_never_answers_is_unknown_and_lands_once(
    make_writer: Callable[..., Writer],
) -> None:
    behind = make_writer()
    server = SilentCatalog(behind.catalog)
    with server.serve() as address:
        catalog = open_catalog(
            {
                "iceberg.catalog.type": "rest",
                "iceberg.catalog.uri": address,
                "iceberg.catalog.rest.client.socket-timeout-ms": "300",
            }
        )
        ours = Writer(IcebergTable(catalog, "db.t", "job", write_props={}), catalog)
        ours.commit(0, 100)
        ours.before_sending(server.hush)
        with pytest.raises(CommitUnknown, match="may have landed"):
            ours.commit(100, 200)
        assert server.ignored >= 2, "the commit, and the question about it"
        server.speak()
        # What the server had taken before it fell silent is done now, or is not: the table tells.
        deadline = time.monotonic() + 60
        while (ours.table.found().offsets[TOPIC]) == 100:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert behind.ids() == Counter(range(200))
