"""What can go wrong around a commit of the S3 sink, in a bucket of moto, in a folder, and in
stores of Google and Azure."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from icestream.api.batch import Batch, Staged
from icestream.api.checkpoint import Checkpoint, checkpoint_moved
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    FatalError,
    RetriableError,
    SinkUnavailable,
)
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, TargetTask, WriterTask
from icestream.connectors.s3.commits import ledger
from icestream.connectors.s3.commits.staged import of_payload
from icestream.connectors.s3.probes import keeps_conditions
from icestream.connectors.s3.stores.opening import open_store
from icestream.connectors.s3.stores.s3_store import S3Store
from icestream.connectors.s3.stores.store import AnswerLost, Exists, ObjectStore
from icestream.connectors.s3.target import S3Plan, S3Target
from icestream.connectors.s3.writer import ObjectWriter
from tests.behaviours.test_sinks import IDS, SOURCE, Subject, bucket_config, checkpoint_to, s3_subject
from tests.clouds import CLOUDS, cloud_config
from tests.http_proxy import proxy
from tests.integration.s3_faults import Faults

LATER = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
LINES = {"format.class": "io.confluent.connect.s3.format.json.JsonFormat", "flush.size": "3"}
PREFIX = "topics/events/partition=0/events+0+000000000"


@dataclass
class Bucket:
    config: dict[str, str]
    subject: Subject
    store: ObjectStore

    def target(self, job: str = "job", store: ObjectStore | None = None, **more: str) -> S3Target:
        return S3Target(job, {**self.config, **more}, store or self.store)

    def staged(self, start: int, until: int) -> tuple[S3Plan, Staged]:
        return self.subject.stage(start, until)

    def objects(self) -> list[str]:
        return [one.key for one in self.store.list("topics/") if "_icestream" not in one.key]


@pytest.fixture(params=["folder", "moto", *CLOUDS])
def bucket(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    if request.param == "moto":
        config = bucket_config(request.getfixturevalue("s3"))
    elif request.param == "folder":
        config = {"store.url": f"file://{tmp_path}", "s3.bucket.name": "lake"}
    else:
        config = cloud_config(request.param, monkeypatch)
    config |= LINES
    return Bucket(config, s3_subject(config), open_store(config))


class Faulty:
    """A store of which some calls fail: `before` they do anything, or after it, when their answer is lost."""

    def __init__(self, store: ObjectStore, **faults: Callable[[], None]) -> None:
        self._store = store
        self._faults = faults
        self.name = store.name

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def spoiled(*args: Any, **kwargs: Any) -> Any:
            if before := self._faults.get(f"before_{name}"):
                before()
            answer = call(*args, **kwargs)
            if after := self._faults.get(f"after_{name}"):
                after()
            return answer

        return spoiled


def lost() -> None:
    raise AnswerLost("the connection was closed")


def once(what: Callable[[], None], turn: int = 1) -> Callable[[], None]:
    calls = 0

    def spoiled() -> None:
        nonlocal calls
        calls += 1
        if calls == turn:
            what()

    return spoiled


def commit_of(bucket: Bucket, start: int, until: int, before: Checkpoint | None) -> Commit:
    plan, staged = bucket.staged(start, until)
    return Commit(checkpoint_to(start, until, before), before, plan, staged)


def test_objects_have_the_names_and_borders_of_confluents(bucket: Bucket) -> None:
    bucket.subject.commit(0, 7, None)
    assert bucket.objects() == [f"{PREFIX}{offset}.json" for offset in (0, 3, 6)]


def test_the_ledger_tells_the_last_commits(bucket: Bucket) -> None:
    first = commit_of(bucket, 0, 6, None)
    before = bucket.target().commit(first).checkpoint
    assert before is not None
    bucket.target().commit(commit_of(bucket, 6, 9, before))
    newest, oldest = bucket.target().commits(10)
    assert (newest.id, newest.rows, newest.files) == ("2", 3, 1)
    assert (oldest.id, oldest.rows, oldest.files, oldest.commit) == ("1", 6, 2, before.commit)
    assert (newest.rejected, oldest.rejected) == (0, 0)
    sizes = [one.size for one in bucket.store.list("topics/") if "_icestream" not in one.key]
    assert sum(one.bytes or 0 for one in (newest, oldest)) == sum(sizes)
    assert [one.id for one in bucket.target().commits(1)] == ["2"]


def test_an_entry_whose_answer_was_lost_has_landed(bucket: Bucket) -> None:
    commit = commit_of(bucket, 0, 5, None)
    target = bucket.target(store=Faulty(bucket.store, after_put=once(lost)))
    assert target.commit(commit).checkpoint == commit.checkpoint
    assert bucket.subject.visible() == list(range(5))


def test_an_entry_that_may_still_arrive_is_asked_for_and_nothing_is_deleted(bucket: Bucket) -> None:
    commit = commit_of(bucket, 0, 5, None)
    target = bucket.target(store=Faulty(bucket.store, before_put=once(lost)))
    with pytest.raises(CommitUnknown, match="may land all the same"):
        target.commit(commit)
    assert bucket.target().found().checkpoint is None
    assert len(list(bucket.store.open_uploads("topics/"))) == 2
    # Now it arrives, after another attempt of the same offsets was staged: that one is refused.
    bucket.target().commit(commit)
    with pytest.raises(CommitConflict, match="somebody else committed"):
        target.commit(
            replace(commit_of(bucket, 0, 5, None), checkpoint=replace(commit.checkpoint, commit="x"))
        )
    assert bucket.subject.visible() == list(range(5))


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whoever_reads_an_entry_that_is_half_published_publishes_the_rest(
    bucket: Bucket, when: str, turn: int
) -> None:
    commit = commit_of(bucket, 0, 6, None)

    def away() -> None:
        raise SinkUnavailable("the store is away")

    target = bucket.target(store=Faulty(bucket.store, **{f"{when}_complete": once(away, turn)}))
    with pytest.raises(CommitUnknown, match="the commit has landed"):
        target.commit(commit)
    assert bucket.target().found().checkpoint == commit.checkpoint
    assert bucket.subject.visible() == list(range(6))
    assert list(bucket.store.open_uploads("topics/")) == []


def test_a_completion_whose_answer_was_lost_is_known_by_its_metadata(bucket: Bucket) -> None:
    commit = commit_of(bucket, 0, 3, None)
    bucket.target(store=Faulty(bucket.store, after_complete=once(lost))).commit(commit)
    assert bucket.subject.visible() == [0, 1, 2]


def test_a_writer_that_is_stale_for_so_long_that_its_number_is_free_again_is_refused(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "KEPT", 2)
    first = bucket.subject.commit(0, 3, None)
    stale = bucket.target()
    stale.found()
    late = commit_of(bucket, 3, 6, first)
    last = first
    for start in range(3, 15, 3):
        last = bucket.subject.commit(start, start + 3, last)
    assert bucket.store.get("topics/_icestream/job/00000000000000000002.json") is None
    with pytest.raises(CommitConflict, match="somebody else committed"):
        stale.commit(late)
    stale.discard(late.staged)
    assert bucket.target().found().checkpoint == last
    assert bucket.subject.visible() == list(range(15))
    assert list(bucket.store.open_uploads("topics/")) == []


def test_uploads_that_the_store_has_lost_are_written_again(bucket: Bucket) -> None:
    commit = commit_of(bucket, 0, 6, None)
    gone = of_payload(commit.staged.payload)[1]

    def loses() -> None:
        bucket.store.abort(gone.key, gone.upload.id)

    with pytest.raises(CommitUnknown, match="has lost uploads"):
        bucket.target(store=Faulty(bucket.store, after_put=once(loses))).commit(commit)
    target = bucket.target()
    assert target.found().checkpoint == commit.checkpoint
    left = target.unfinished()
    assert left is not None
    assert left.batch == Batch("batch-0", Offsets({SOURCE: 0}), Offsets({SOURCE: 6}))
    assert f"such as '{gone.key}' with offsets 3 to 5" in left.lost
    with pytest.raises(SinkUnavailable, match="not finished"):
        target.commit(commit_of(bucket, 6, 9, commit.checkpoint))
    target.found()
    writer = ObjectWriter(WriterTask([TargetTask(target.name, left.plan)], left.batch.id))
    bucket.subject.write(writer, 0, 6)
    target.finish(writer.close()[target.name])
    assert target.unfinished() is None
    assert bucket.target().unfinished() is None
    assert bucket.subject.visible() == list(range(6))


def test_an_object_of_somebody_else_stops_the_job_and_is_not_touched(bucket: Bucket) -> None:
    bucket.store.replace(f"{PREFIX}0.json", b'{"id": 77}\n')
    with pytest.raises(FatalError, match="of somebody else, and batch batch-0 has committed offsets 0 to 2"):
        bucket.subject.commit(0, 3, None)
    assert bucket.subject.visible() == [77]
    bucket.store.remove([f"{PREFIX}0.json"])
    bucket.target().found()
    assert bucket.subject.visible() == [0, 1, 2]


def test_objects_may_be_replaced_where_the_config_says_so(bucket: Bucket) -> None:
    bucket.store.replace(f"{PREFIX}0.json", b'{"id": 77}\n')
    target = bucket.target(**{"icestream.s3.existing.objects": "replace"})
    target.commit(commit_of(bucket, 0, 3, None))
    assert bucket.subject.visible() == [0, 1, 2]


def test_offsets_that_are_moved_back_replace_the_objects_of_their_names(bucket: Bucket) -> None:
    first = bucket.subject.commit(0, 6, None)
    moved = checkpoint_moved(first, "22222222-2222-2222-2222-222222222222", {SOURCE: 0}, IDS, Offsets({}))
    target = bucket.target()
    target.commit(Commit(moved, first, target.plan({})))
    again = commit_of(bucket, 0, 4, moved)
    target.commit(replace(again, checkpoint=replace(again.checkpoint, commit="again")))
    # The second object is shorter now than it was.
    assert bucket.subject.visible() == [0, 1, 2, 3]
    assert bucket.target().audit().rows is None


def test_an_object_to_be_replaced_that_somebody_takes_away_holds_nothing_up(bucket: Bucket) -> None:
    first = bucket.subject.commit(0, 3, None)
    moved = checkpoint_moved(first, "22222222-2222-2222-2222-222222222222", {SOURCE: 0}, IDS, Offsets({}))
    target = bucket.target()
    target.commit(Commit(moved, first, target.plan({})))
    again = commit_of(bucket, 0, 3, moved)
    taken = once(lambda: bucket.store.remove([f"{PREFIX}0.json"]))
    target = bucket.target(store=Faulty(bucket.store, after_put=taken))
    target.commit(replace(again, checkpoint=replace(again.checkpoint, commit="again")))
    assert bucket.subject.visible() == [0, 1, 2]


def test_s3_says_not_found_of_a_tag_that_is_gone(s3: Mapping[str, str]) -> None:
    """moto does not look at tags; AWS answers 404."""
    store = open_store({**bucket_config(dict(s3)), **LINES})
    assert isinstance(store, S3Store)

    def refused(**_: object) -> None:
        said = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
        raise ClientError(said, "CompleteMultipartUpload")

    upload = store.upload("topics/x", io.BytesIO(b"x"), {})
    complete, store._client.complete_multipart_upload = store._client.complete_multipart_upload, refused
    with pytest.raises(Exists):
        store.complete(upload, '"tag"')
    store._client.complete_multipart_upload = complete


def test_objects_of_a_topic_that_is_gone_are_not_written_over(bucket: Bucket) -> None:
    first = bucket.subject.commit(0, 3, None)
    anew = replace(IDS, topics={SOURCE.topic: "another id"})
    moved = checkpoint_moved(first, "22222222-2222-2222-2222-222222222222", {SOURCE: 0}, anew, Offsets({}))
    target = bucket.target()
    target.commit(Commit(moved, first, target.plan({})))
    before = bucket.store.read(f"{PREFIX}0.json")
    plan, staged = bucket.staged(0, 1)
    mine = [replace(one, batch="again") for one in staged.payload]
    after = replace(checkpoint_to(0, 1, moved), commit="again")
    with pytest.raises(FatalError, match=r"existing\.objects=replace"):
        target.commit(Commit(after, moved, plan, replace(staged, payload=mine)))
    assert bucket.store.read(f"{PREFIX}0.json") == before
    # Whoever wants them gone says so, and restarts.
    bucket.target(**{"icestream.s3.existing.objects": "replace"}).found()
    assert bucket.subject.visible() == [0]


def test_whoever_finishes_a_commit_late_leaves_what_another_has_finished(bucket: Bucket) -> None:
    commit = commit_of(bucket, 0, 3, None)
    (gone,) = of_payload(commit.staged.payload)
    loses = once(lambda: bucket.store.abort(gone.key, gone.upload.id))
    with pytest.raises(CommitUnknown):
        bucket.target(store=Faulty(bucket.store, after_put=loses)).commit(commit)
    managers = [bucket.target(), bucket.target()]
    staged = []
    for target in managers:
        target.found()
        left = target.unfinished()
        assert left is not None
        writer = ObjectWriter(WriterTask([TargetTask(target.name, left.plan)], left.batch.id))
        bucket.subject.write(writer, 0, 3)
        staged.append(writer.close()[target.name])
    managers[0].finish(staged[0])
    bucket.store.remove([gone.key])  # somebody has read it, and needs it no more
    with pytest.raises(CommitConflict, match="somebody else has finished"):
        managers[1].finish(staged[1])
    assert bucket.objects() == [] and list(bucket.store.open_uploads("topics/")) == []


def test_the_sweep_aborts_what_no_commit_can_need_and_nothing_else(bucket: Bucket) -> None:
    bucket.staged(0, 3)
    bucket.staged(30, 33)
    checkpoint = bucket.subject.commit(0, 6, None)
    other = commit_of(bucket, 0, 1, None)
    ledger.Ledger(bucket.store, "topics", "other").add(
        ledger.Entry(1, other.checkpoint, of_payload(other.staged.payload))
    )
    assert bucket.target().sweep("another commit", LATER) == 0
    assert bucket.target().sweep(checkpoint.commit, LATER) == 1
    kept = sorted(one.key for one in bucket.store.open_uploads("topics/"))
    assert kept == [f"{PREFIX}0.json", "topics/events/partition=0/events+0+0000000030.json"]


def test_an_audit_tells_which_records_are_there_and_a_deep_one_reads_them(bucket: Bucket) -> None:
    bucket.subject.commit(0, 6, None)
    audit = bucket.target().audit()
    assert audit.rows == 6
    assert audit.row_offsets is not None
    assert [sorted(layer) for layer in audit.row_offsets().layers[SOURCE]] == [list(range(6))]
    bucket.store.remove([f"{PREFIX}3.json"])
    assert bucket.target().audit().rows == 3
    assert bucket.target("other").audit().rows is None


def test_old_entries_are_removed(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "KEPT", 2)
    last = None
    for start in range(4):
        last = bucket.subject.commit(start, start + 1, last)
    kept = [one.key.rpartition("/")[2] for one in bucket.store.list("topics/_icestream/job/")]
    assert [name.lstrip("0") for name in kept] == ["3.done", "3.json", "4.done", "4.json"]


def test_a_ledger_that_cannot_be_read_is_a_sentence(bucket: Bucket) -> None:
    bucket.subject.commit(0, 3, None)
    bucket.store.replace("topics/_icestream/job/00000000000000000001.json", b"{}")
    with pytest.raises(FatalError, match="commit 1 of the ledger cannot be read"):
        bucket.target().found()


def test_a_probe_whose_first_answer_is_lost_and_that_the_client_repeats_is_an_answer(bucket: Bucket) -> None:
    def refused() -> None:
        raise Exists("it is there")

    store = Faulty(bucket.store, after_put=once(refused))
    assert keeps_conditions(store, "topics")
    assert list(bucket.store.list("topics/_icestream/probes/")) == []


class Forgetful(S3Store):
    """A store that takes every put, whatever its condition."""

    def put(self, key: str, content: bytes) -> None:
        self.replace(key, content)


def test_a_store_without_conditions_is_refused(s3: Mapping[str, str]) -> None:
    config = {
        **bucket_config(dict(s3)),
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
    }
    real = open_store(config)
    assert isinstance(real, S3Store)
    store = Forgetful(real._client, config["s3.bucket.name"])
    with pytest.raises(ConfigError, match=r"does not keep conditions .* icestream\.s3\.at-least-once=true"):
        S3Target("job", config, store).plan({})
    assert list(store.list("")) == []
    S3Target("job", {**config, "icestream.s3.at-least-once": "true"}, store).plan({})


def test_at_least_once_commits_without_conditions(s3: Mapping[str, str]) -> None:
    subject = s3_subject({**bucket_config(dict(s3)), "icestream.s3.at-least-once": "true"})
    first = subject.commit(0, 4, None)
    subject.commit(4, 6, first)
    assert subject.visible() == list(range(6))
    with pytest.raises(CommitConflict):
        subject.commit(0, 4, None)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))])
def test_a_bucket_with_bad_days_has_each_record_once(s3: Mapping[str, str], seed: int) -> None:
    config = bucket_config(dict(s3))
    chances = {"500": 0.05, "503 SlowDown": 0.03, "reset before": 0.05, "reset after": 0.1}
    faults = Faults(chances, seed)
    at = 0
    with proxy(config["store.url"], faults) as address:
        bad = s3_subject({**config, "store.url": address, "s3.part.retries": "0"})
        while at < 40:
            with contextlib.suppress(RetriableError):
                target = bad.target()
                before = target.found().checkpoint
                at = before.offsets[SOURCE] if before else 0
                plan, staged = bad.stage(at, at + 5)
                after = replace(checkpoint_to(at, at + 5, before), commit=str(uuid.uuid4()))
                target.commit(Commit(after, before, plan, staged))
    good = s3_subject(config)
    # The last commit may have landed with some of its objects still to follow.
    good.target().found()
    there = good.visible()
    assert there == list(range(len(there)))
    assert len(there) >= 40 and faults.met["reset after"]
