"""The commit: lost answers, other people's commits in between, RESTORE, log clean-up, stale managers."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from icestream.api.batch import Counts
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_moved
from icestream.api.errors import CommitConflict, CommitUnknown, ConfigError, LostOffsets, SinkUnavailable
from icestream.api.offsets import NOTHING, Offsets
from icestream.api.sink import Commit
from icestream.connectors.delta.commits.actions import add_action
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.opening import KeptTable
from icestream.connectors.delta.table import DeltaSinkTable
from tests.unit.connectors.delta.lake import IDS, Lake, ids
from tests.unit.pipeline.batches import SOURCE


def around_send(
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> list[int]:
    """Do something once, after the table was checked and before or after the commit was sent."""
    send: Any = DeltaSinkTable._send
    times: list[int] = []

    def spoiled(self: DeltaSinkTable, *arguments: Any, **options: Any) -> None:
        times.append(1)
        if len(times) == 1:
            before()
        send(self, *arguments, **options)
        if len(times) == 1:
            after()

    monkeypatch.setattr(DeltaSinkTable, "_send", spoiled)
    return times


def fails(error: BaseException) -> Callable[..., None]:
    def act(*arguments: object) -> None:
        raise error

    return act


# -- lost answers --


@pytest.mark.parametrize(
    "error",
    [
        OSError("connection reset"),
        CommitFailedError("Concurrent transaction failed."),
        CommitFailedError("Failed to commit transaction: 15"),
        DeltaError("the checkpoint failed"),
    ],
    ids=["connection", "own transaction", "retries", "hook"],
)
def test_a_commit_that_landed_is_known_whatever_was_answered(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first = lake.land(ids(0, 3))
    times = around_send(monkeypatch, after=fails(error))
    second = lake.land(ids(3, 5), first)
    assert len(times) == 1
    assert lake.ids() == list(range(5))
    assert lake.target().found().checkpoint == second


def test_files_stay_if_a_request_may_still_arrive(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lake.land(ids(0, 3))
    around_send(monkeypatch, before=fails(OSError("connection reset")))
    with pytest.raises(CommitConflict) as refused:
        lake.land(ids(3, 5), first)
    assert not refused.value.certain


def test_a_request_that_arrives_late_is_met_by_the_next_attempt(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit is sent, and nothing is heard of it; it lands when the second is about to be sent."""
    first = lake.land(ids(0, 3))
    late = lake.commit_of(lake.stage(ids(3, 5), 3), 3, 2, first)
    target = lake.target()
    send: Any = DeltaSinkTable._send
    handle = lake.table()

    def arrives() -> None:
        files = [add_action(file, late.plan) for file in late.staged.payload]
        send(target, handle, target._state(handle), late, files)

    around_send(monkeypatch, before=arrives)
    again = lake.commit_of(lake.stage(ids(3, 5), 3), 3, 2, first)
    with pytest.raises(CommitConflict):
        lake.target().commit(renamed(again, "00000000-0000-0000-0000-00000000aaaa"))
    assert lake.target().found().checkpoint == late.checkpoint
    assert lake.ids() == list(range(5))


def test_nobody_knows_while_the_storage_is_away(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lake.land(ids(0, 3))

    def goes_away() -> None:
        monkeypatch.setattr(KeptTable, "now", fails(SinkUnavailable("away")))
        raise OSError("connection reset")

    around_send(monkeypatch, after=goes_away)
    with pytest.raises(CommitUnknown, match="may have landed"):
        lake.land(ids(3, 5), first)


# -- two managers --


def test_a_stale_manager_never_lands(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it has looked before the other one committed."""
    first = lake.land(ids(0, 3))
    stale = lake.commit_of(lake.stage(ids(3, 5), 3), 3, 2, first)
    around_send(monkeypatch, before=lambda: land_as_another(lake, first))
    with pytest.raises(CommitConflict):
        lake.target().commit(stale)
    with pytest.raises(CommitConflict, match="somebody else committed"):
        lake.target().commit(stale)
    assert lake.ids() == list(range(5))


def land_as_another(lake: Lake, before: Checkpoint) -> None:
    commit = lake.commit_of(lake.stage(ids(3, 5), 3), 3, 2, before)
    lake.target().commit(renamed(commit, "99999999-0000-0000-0000-000000000000"))


def renamed(commit: Commit, id_: str) -> Commit:
    return replace(commit, checkpoint=replace(commit.checkpoint, commit=id_))


# -- others --


def foreign_append(lake: Lake) -> None:
    write_deltalake(str(lake.path), pa.table({"id": [100], "text": ["foreign"]}), mode="append")


def foreign_compaction(lake: Lake) -> None:
    lake.table().optimize.compact()


def foreign_delete(lake: Lake) -> None:
    lake.table().delete("id = 0")


def foreign_transaction(lake: Lake) -> None:
    lake.table().create_write_transaction(
        [],
        "append",
        lake.table().schema(),
        commit_properties=CommitProperties(app_transactions=[Transaction("theirs", 7, 1)]),
    )


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        (foreign_append, [*range(6), 100]),
        (foreign_compaction, list(range(6))),
        (foreign_delete, list(range(1, 6))),
        (foreign_transaction, list(range(6))),
    ],
    ids=["append", "compaction", "delete", "transaction"],
)
def test_others_may_write_between_the_check_and_the_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, foreign: Callable[[Lake], None], expected: list[int]
) -> None:
    second = lake.land(ids(2, 4), lake.land(ids(0, 2)))
    around_send(monkeypatch, before=lambda: foreign(lake))
    third = lake.land(ids(4, 6), second)
    assert lake.ids() == expected
    assert lake.target().found().checkpoint == third


def test_a_batch_is_planned_again_if_the_table_was_altered(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lake.land(ids(0, 2))
    around_send(monkeypatch, before=lambda: lake.table().alter.add_columns([Field("theirs", "long")]))
    with pytest.raises(CommitConflict, match="changed while a batch was written"):
        lake.land(ids(2, 4), first)
    lake.land(ids(2, 4), first)
    assert lake.ids() == list(range(4))


def test_columns_that_were_added_without_their_rows_are_found(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lake.land(ids(0, 2))
    grow: Any = DeltaSinkTable._grown

    def dies(self: DeltaSinkTable, *arguments: Any) -> Any:
        grow(self, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DeltaSinkTable, "_grown", dies)
        with pytest.raises(KeyboardInterrupt):
            lake.land([{"id": 2, "text": "t2", "more": 1}], first)
    lake.land([{"id": 2, "text": "t2", "more": 1}], first)
    assert lake.rows()[2]["more"] == 1
    assert [entry["operation"] for entry in lake.table().history()].count("ADD COLUMN") == 1


def test_a_table_that_was_made_anew_is_another(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    id_ = lake.target().found().target_id
    commit = lake.commit_of(lake.stage(ids(2, 4), 2), 2, 2, first)
    shutil.rmtree(lake.path)
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("text", pa.string())]))
    with pytest.raises(CommitConflict, match="created anew"):
        lake.target().commit(commit)
    found = lake.target().found()
    assert found.target_id != id_ and found.checkpoint is None


def test_a_manager_that_stays_follows_what_others_do(lake: Lake) -> None:
    """It opens the table once; all that comes is read from its log."""
    first = lake.land(ids(0, 2))
    target = lake.target()
    kept = target._kept
    assert target.found().checkpoint == first
    opened = kept.table
    reached = first
    for at, foreign in enumerate((foreign_append, foreign_compaction, foreign_delete, foreign_transaction)):
        foreign(lake)
        start = 2 + at
        commit = lake.commit_of(lake.stage(ids(start, start + 1), start), start, 1, reached)
        receipt = target.commit(commit)
        assert receipt.checkpoint is not None
        reached = receipt.checkpoint
        assert target.found().checkpoint == reached
    assert kept.table is opened
    assert lake.ids() == [1, 2, 3, 4, 5, 100]
    lake.table().restore(lake.table().version() - 1)
    assert target.found().lost == reached
    shutil.rmtree(lake.path)
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("text", pa.string())]))
    assert target.found().checkpoint is None
    assert kept.table is not opened


# -- RESTORE --


def test_a_restored_table_gets_its_rows_again(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    version = lake.table().version()
    second = lake.land(ids(2, 4), first)
    lake.table().restore(version)
    found = lake.target().found()
    assert (found.checkpoint, found.lost) == (first, second)
    assert lake.ids() == [0, 1]
    again = lake.land(ids(2, 5), first)
    assert lake.ids() == list(range(5))
    found = lake.target().found()
    assert (found.checkpoint, found.lost) == (again, None)


def test_a_table_that_was_restored_to_before_the_job_begins_anew(lake: Lake) -> None:
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("text", pa.string())]))
    first = lake.land(ids(0, 2))
    lake.table().restore(0)
    found = lake.target().found()
    assert (found.checkpoint, found.rolled_back_from, found.offsets) == (None, first, NOTHING)


def test_a_restore_of_a_restore_is_followed(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    after_first = lake.table().version()
    second = lake.land(ids(2, 4), first)
    after_second = lake.table().version()
    lake.table().restore(after_first)
    lake.table().restore(after_second)
    assert lake.target().found().checkpoint == second
    assert lake.ids() == list(range(4))


def test_a_restore_to_a_time_is_followed(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    moment = dt.datetime.fromtimestamp(lake.table().history(1)[0]["timestamp"] / 1000 + 0.001, dt.UTC)
    (newest,) = sorted(lake.path.glob("_delta_log/*.json"))[-1:]
    os.utime(newest, (moment.timestamp() - 0.001,) * 2)
    time.sleep(0.02)
    lake.land(ids(2, 4), first)
    lake.table().restore(moment)
    assert lake.ids() == [0, 1]
    assert lake.target().found().checkpoint == first


def test_a_restore_under_way_is_not_covered(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lake.land(ids(0, 2))
    version = lake.table().version()
    second = lake.land(ids(2, 4), first)
    around_send(monkeypatch, before=lambda: lake.table().restore(version))
    with pytest.raises(CommitConflict):
        lake.land(ids(4, 6), second)
    assert lake.target().found().checkpoint == first
    assert lake.ids() == [0, 1]


# -- what is left when the log is cleaned up --


def cleaned_up(lake: Lake) -> None:
    """As log clean-up does after a month, with other people's commits since."""
    foreign_append(lake)
    lake.table().create_checkpoint()
    for commit in lake.path.glob("_delta_log/*.json"):
        if int(commit.stem) < lake.table().version():
            commit.unlink()


def test_transactions_tell_where_the_job_is_when_no_mark_is_left(lake: Lake) -> None:
    second = lake.land(ids(2, 4), lake.land(ids(0, 2)))
    cleaned_up(lake)
    found = lake.target().found().checkpoint
    assert found is not None
    assert (found.commit, found.offsets, found.source) == (second.commit, second.offsets, IDS)
    assert found.totals == Counts(4, 4)
    third = lake.land(ids(4, 6), found)
    assert lake.ids() == [*range(6), 100]
    assert lake.target().found().checkpoint == third


def test_a_partition_that_was_reset_stays_reset(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    moved = checkpoint_moved(first, "22222222-2222-2222-2222-222222222222", {SOURCE: None}, IDS, NOTHING)
    target = lake.target()
    target.commit(Commit(moved, first, target.plan({})))
    cleaned_up(lake)
    found = lake.target().found().checkpoint
    assert found is not None and (found.commit, found.offsets) == (moved.commit, NOTHING)


def test_a_topic_that_was_created_anew_is_told_by_its_id(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    anew = TopicIds("cluster", {SOURCE.topic: "another"})
    moved = checkpoint_moved(first, "22222222-2222-2222-2222-222222222222", {SOURCE: 1}, anew, NOTHING)
    target = lake.target()
    target.commit(Commit(moved, first, target.plan({})))
    cleaned_up(lake)
    found = lake.target().found().checkpoint
    assert found is not None and found.source == anew and found.offsets == Offsets({SOURCE: 1})


def test_a_job_whose_traces_are_gone_stops(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.land(ids(0, 2))
    cleaned_up(lake)
    monkeypatch.setattr(TableLog, "transactions", lambda self, version: {})
    with pytest.raises(LostOffsets, match="move the offsets by hand"):
        lake.target().found()


def test_a_table_that_forgets_transactions_is_told_all_of_them(lake: Lake) -> None:
    forgets = lake.with_config(
        {"delta.tables.auto-create-props.delta.setTransactionRetentionDuration": "interval 1 days"}
    )
    first = forgets.land(ids(0, 2))
    second = forgets.land(ids(2, 4), first)
    assert forgets.target().found().checkpoint == second
    newest = sorted(lake.path.glob("_delta_log/*.json"))[-1].read_text()
    assert sum("txn" in json.loads(line) for line in newest.splitlines()) >= 8


# -- the log of the table --


def test_the_log_gets_checkpoints_in_a_step_of_its_own(lake: Lake) -> None:
    every_two = lake.with_config({"delta.tables.auto-create-props.delta.checkpointInterval": "2"})
    before = None
    for start in range(0, 10, 2):
        before = every_two.land(ids(start, start + 2), before)
    assert len(list(lake.path.glob("_delta_log/*.checkpoint.parquet"))) >= 2
    assert lake.ids() == list(range(10))


def test_a_checkpoint_of_the_log_that_fails_is_made_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    every_two = lake.with_config({"delta.tables.auto-create-props.delta.checkpointInterval": "2"})
    first = every_two.land(ids(0, 2))
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(DeltaTable, "create_checkpoint", fails(OSError("disk full")))
        second = every_two.land(ids(2, 4), first)
    assert "no checkpoint of the log" in caplog.text
    assert not list(lake.path.glob("_delta_log/*.checkpoint.parquet"))
    every_two.land(ids(4, 6), second)
    assert list(lake.path.glob("_delta_log/*.checkpoint.parquet"))
    assert lake.ids() == list(range(6))


# -- tables that this version does not write to --


UNFIT: dict[str, Callable[[Lake], None]] = {
    "constraint": lambda lake: lake.table().alter.add_constraint({"positive": "id >= 0"}),
    "columns are mapped by name": lambda lake: edited(
        lake, "metaData", lambda action: action["configuration"].update({"delta.columnMapping.mode": "name"})
    ),
    "feature domainMetadata": lambda lake: edited(
        lake,
        "protocol",
        lambda action: action.update(
            minReaderVersion=1, minWriterVersion=7, writerFeatures=["rowTracking", "domainMetadata"]
        ),
    ),
    "is generated": lambda lake: edited(
        lake, "metaData", lambda action: generated(action, "delta.generationExpression")
    ),
    "has an invariant": lambda lake: edited(
        lake, "metaData", lambda action: generated(action, "delta.invariants")
    ),
}


def edited(lake: Lake, kind: str, change: Callable[[Any], None]) -> None:
    commit = lake.path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if kind in action:
            change(action[kind])
    commit.write_text("\n".join(json.dumps(action) for action in actions))


def generated(action: Any, key: str) -> None:
    schema = json.loads(action["schemaString"])
    schema["fields"][1]["metadata"][key] = '{"expression":{"expression":"1"}}' if "inv" in key else "id"
    action["schemaString"] = json.dumps(schema)


@pytest.mark.parametrize("why", UNFIT)
def test_a_table_whose_rules_nobody_would_keep_is_refused_before_anything_is_staged(
    lake: Lake, why: str
) -> None:
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("text", pa.string())]))
    UNFIT[why](lake)
    with pytest.raises(ConfigError, match=why):
        lake.target().plan({})


# -- what is left over, and what can be proven --


def test_files_of_dead_batches_are_swept(lake: Lake) -> None:
    first = lake.land(ids(0, 2))
    dead = lake.stage(ids(2, 4), 2).staged
    assert len(list(lake.path.rglob("*.parquet"))) == 2
    hour = dt.timedelta(hours=2)
    second = lake.land(ids(2, 5), first)
    later = dt.datetime.now(dt.UTC) + hour
    assert lake.target().sweep(second.commit, later) == 0, "the landed batch has the same id"
    third = lake.land(ids(5, 6), second)
    (orphan,) = dead.payload
    name = orphan.path.replace(second.commit, "00000000-0000-0000-0000-00000000dead")
    (lake.path / orphan.path).rename(lake.path / name)
    assert lake.target().sweep(third.commit, dt.datetime.now(dt.UTC)) == 0, "it is too young"
    os.utime(lake.path / name, (dt.datetime.now().timestamp() - 0.01,) * 2)
    fourth = lake.land(ids(6, 7), third)
    assert lake.target().sweep(fourth.commit, later) == 1
    assert lake.ids() == list(range(7))


def test_an_audit_knows_of_other_writers(lake: Lake) -> None:
    lake.land(ids(0, 3))
    audit = lake.target().audit()
    assert (audit.rows, audit.other_writers) == (3, False)
    foreign_append(lake)
    audit = lake.target().audit()
    assert (audit.rows, audit.other_writers) == (4, True)
    assert audit.row_offsets is not None
    offsets = audit.row_offsets()
    assert offsets.foreign_rows == 1
    assert [list(layer) for layer in offsets.layers[SOURCE]] == [[0, 1, 2]]


def test_a_compaction_leaves_rows_of_unknown_origin(lake: Lake) -> None:
    lake.land(ids(3, 5), lake.land(ids(0, 3)))
    foreign_compaction(lake)
    audit = lake.target().audit()
    assert (audit.rows, audit.other_writers) == (5, False)
    assert audit.row_offsets is not None and audit.row_offsets().foreign_rows == 5


def test_the_log_tells_the_last_commits_whoever_made_them(lake: Lake) -> None:
    first = lake.land([*ids(0, 3), b"[]"])
    foreign_append(lake)
    lake.land(ids(4, 6), first)
    newest, foreign, oldest, *creation = lake.target().commits(10)
    assert (newest.rows, newest.rejected, newest.filtered) == (2, 0, 0)
    assert (oldest.rows, oldest.rejected, oldest.commit) == (3, 1, first.commit)
    assert (newest.is_ours, foreign.is_ours, foreign.rows) == (True, False, None)
    assert int(newest.id) > int(foreign.id) > int(oldest.id)
    sizes = [path.stat().st_size for path in lake.path.rglob("*.parquet")]
    assert sum(one.bytes or 0 for one in (newest, foreign, oldest)) == sum(sizes)
    assert [one.id for one in lake.target().commits(1)] == [newest.id]
    assert all(one.files == 0 for one in creation)
