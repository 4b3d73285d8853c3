"""Delta tables on an object store: commits are conditional writes, whoever races, whatever answer is lost.

Against moto, with a proxy in front of it where answers get lost.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from icestream.api.batch import Batch, Counts
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict, CommitUnknown, SinkUnavailable
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, TargetTask, WriterTask
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.connectors.delta.storage import Storage
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from tests.http_proxy import Answer, ConnectionLost, PassOn, Request, proxy
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
UPSERTS = {"delta.tables.upsert-mode-enabled": "true", "delta.tables.default-id-columns": "id"}
Records = Mapping[int, str | None]


class World:
    """A table in the bucket, and the batches of jobs that come by `endpoint`."""

    def __init__(self, s3: Mapping[str, str], **options: str) -> None:
        self.endpoint = s3["iceberg.catalog.s3.endpoint"]
        folder = uuid.uuid4().hex
        self.config = {
            "delta.tables": "sales.t",
            "delta.location": f"s3a://warehouse/{folder}",
            "delta.storage.s3.region": "us-east-1",
            "delta.storage.s3.access-key-id": "some-key",
            "delta.storage.s3.secret-access-key": s3["iceberg.catalog.s3.secret-access-key"],
            "delta.storage.s3.path-style-access": "true",
            **options,
        }
        self.place = f"s3://warehouse/{folder}/sales/t"
        DeltaTable.create(self.place, SCHEMA, storage_options=self.storage)

    @property
    def storage(self) -> dict[str, str]:
        given = {**self.config, "delta.storage.s3.endpoint": self.endpoint}
        return Storage.from_config(given).for_delta(self.place)

    def batch(
        self,
        records: Records,
        before: Checkpoint | None,
        *,
        job: str = "job",
        endpoint: str | None = None,
        commit: str | None = None,
    ) -> Callable[[], Checkpoint | None]:
        """Stage records, and return what commits them."""
        config = {**self.config, "delta.storage.s3.endpoint": endpoint or self.endpoint}
        sink = DeltaPlugin().open(job, config)
        (target,) = sink.targets()
        plan = target.plan({})
        start = before.offsets[SOURCE] if before else 0
        ends = Offsets({SOURCE: start}), Offsets({SOURCE: start + len(records)})
        batch = Batch(commit or str(uuid.uuid4()), *ends)
        writer = sink.writer(WriterTask([TargetTask("sales.t", plan)], batch.id))
        values = [json.dumps({"id": id_, "text": text}).encode() for id_, text in records.items()]
        prepared = record_path_from(RecordSettings.of(CONFIG)).prepare(chunk(values, start)).records
        offsets = np.arange(start, start + len(records))
        assert not writer.write(prepared, RowOrigins.of_one(SOURCE, offsets)).failed
        staged = writer.close()["sales.t"]
        counts = {SOURCE: Counts(len(records), len(records))}
        after = checkpoint_after(before, batch, counts, TopicIds("cluster", {SOURCE.topic: "id"}))
        return lambda: target.commit(Commit(after, before, plan, staged)).checkpoint

    def rows(self) -> list[tuple[int, str | None]]:
        table = DeltaTable(self.place, storage_options=self.storage).to_pyarrow_table()
        return sorted(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))

    def checkpoint(self, job: str = "job") -> Checkpoint | None:
        config = {**self.config, "delta.storage.s3.endpoint": self.endpoint}
        return DeltaPlugin().open(job, config).targets()[0].found().checkpoint


class LosesCommits:
    """Loses what the store answers to commits; `before`: the requests themselves."""

    def __init__(self, times: int, *, before: bool = False, status: int | None = None) -> None:
        self.left = times
        self._before = before
        self._status = status
        self.met = 0

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        is_commit = request.verb == "PUT" and "/_delta_log/" in request.target
        if not is_commit or not self.left:
            return pass_on(request)
        self.left -= 1
        self.met += 1
        if not self._before:
            pass_on(request)
        if self._status is not None:
            return Answer(self._status, {"Content-Type": "application/xml"}, b"<Error><Code>X</Code></Error>")
        raise ConnectionLost


KINDS = pytest.mark.parametrize("options", [{}, UPSERTS], ids=["appends", "upserts"])


@KINDS
def test_batches_land_with_their_checkpoint(s3: dict[str, str], options: dict[str, str]) -> None:
    world = World(s3, **options)
    last = world.batch({1: "a", 2: "b"}, None)()
    last = world.batch({2: "c", 3: "d"}, last)()
    both = [(1, "a"), (2, "c"), (3, "d")]
    assert world.rows() == (both if options else sorted([*both, (2, "b")]))
    assert world.checkpoint() == last
    maintainer = DeltaPlugin().maintainer(
        "job", {**world.config, "delta.storage.s3.endpoint": world.endpoint}, "sales.t"
    )
    before = world.rows()
    maintainer.compact({"min-files": 2}, dry_run=False)
    assert world.rows() == before and world.checkpoint() == last
    maintainer.expire({}, dry_run=False)
    maintainer.orphans({}, dry_run=False)
    assert world.rows() == before


@KINDS
def test_of_managers_of_one_job_that_race_one_lands(s3: dict[str, str], options: dict[str, str]) -> None:
    world = World(s3, **options)
    last = world.batch({0: "x"}, None)()
    for turn in range(3):
        commits = [world.batch({10 * turn + 1: f"manager {one}"}, last) for one in range(3)]

        def outcome(commit: Callable[[], Checkpoint | None]) -> Checkpoint | None:
            try:
                return commit()
            except CommitConflict:
                return None

        with ThreadPoolExecutor(3) as threads:
            landed = [one for one in threads.map(outcome, commits) if one is not None]
        assert len(landed) == 1
        last = landed[0]
        assert world.checkpoint() == last
    assert [id_ for id_, _ in world.rows()] == [0, 1, 11, 21]


@KINDS
def test_jobs_that_race_all_land(s3: dict[str, str], options: dict[str, str]) -> None:
    world = World(s3, **options)

    def run(job: int) -> None:
        last: Checkpoint | None = None
        for turn in range(3):
            for _ in range(50):
                try:
                    last = world.batch({100 * job + turn: "x"}, last, job=f"job {job}")()
                    break
                except CommitConflict:
                    continue
            else:
                raise AssertionError("it never landed")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(run, range(3)))
    assert [id_ for id_, _ in world.rows()] == [100 * job + turn for job in range(3) for turn in range(3)]


@KINDS
@pytest.mark.parametrize("status", [None, 500], ids=["connection", "500"])
def test_a_commit_whose_answer_is_lost_is_there_once(
    s3: dict[str, str], options: dict[str, str], status: int | None
) -> None:
    world = World(s3, **options)
    last = world.batch({1: "a"}, None)()
    faults = LosesCommits(1, status=status)
    with proxy(world.endpoint, faults) as endpoint:
        last = world.batch({1: "b", 2: "c"}, last, endpoint=endpoint)()
    assert faults.met == 1
    assert world.checkpoint() == last
    both = [(1, "b"), (2, "c")]
    assert world.rows() == (both if options else sorted([(1, "a"), *both]))
    world.batch({3: "d"}, last)()
    assert len(world.rows()) == (3 if options else 4)


@KINDS
@pytest.mark.parametrize("before", [False, True], ids=["landed", "did not land"])
def test_a_commit_of_unknown_outcome_is_found_or_run_again(
    s3: dict[str, str], options: dict[str, str], before: bool
) -> None:
    """The store answers nothing any more; whoever comes next asks the table."""
    world = World(s3, **options)
    last = world.batch({1: "a"}, None)()
    faults = LosesCommits(10_000, before=before)
    landed: Checkpoint | None = None
    with proxy(world.endpoint, faults) as endpoint:
        try:
            landed = world.batch({2: "b"}, last, endpoint=endpoint)()
        except (CommitConflict, CommitUnknown, SinkUnavailable) as error:
            assert not isinstance(error, CommitConflict) or not error.certain
    now = world.checkpoint()
    assert (now == last) is before
    if landed is not None:
        assert now == landed
    if before:
        now = world.batch({2: "b"}, last)()
    assert world.rows() == [(1, "a"), (2, "b")]
    world.batch({3: "c"}, now)()
    assert world.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_a_compaction_whose_answer_is_lost_repeats_no_row(s3: dict[str, str]) -> None:
    world = World(s3)
    last: Checkpoint | None = None
    for id_ in range(4):
        last = world.batch({id_: "x"}, last)()
    faults = LosesCommits(1)
    with proxy(world.endpoint, faults) as endpoint:
        config = {**world.config, "delta.storage.s3.endpoint": endpoint}
        (step,) = DeltaPlugin().maintainer("job", config, "sales.t").compact({"min-files": 2}, dry_run=False)
    assert faults.met == 1 and step.after == 1
    assert [id_ for id_, _ in world.rows()] == [0, 1, 2, 3]
    assert world.checkpoint() == last
