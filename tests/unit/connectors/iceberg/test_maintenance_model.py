"""Random appends, merges, expiries, rollbacks, clean-ups: rows, checkpoints and proof are as in a model."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyroaring import BitMap64

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire
from icestream.connectors.iceberg.maintenance.orphans import remove_orphans
from icestream.connectors.iceberg.maintenance.replace_commit import Replacement, replace_files
from tests.long_form import sized
from tests.unit.connectors.iceberg.maintained import BUCKETS, PLAIN, Job, ids, loaded, new_catalog

FAR = 10_000_000


@dataclass(frozen=True)
class State:
    """How many records of each job a snapshot has, and how many rows of somebody else."""

    jobs: tuple[int, int] = (0, 0)
    theirs: int = 0


class Model:
    def __init__(self, folder: Path, spec: PartitionSpec, seed: int) -> None:
        self.chance = random.Random(seed)
        self.catalog = new_catalog(folder, spec)
        self.jobs = [Job(self.catalog, "a"), Job(self.catalog, "b", first=FAR)]
        self.now = State()
        self.states: dict[int, State] = {}
        self.days = 0
        self.refused = 0

    def step(self) -> str:
        acts = [self.append] * 6 + [self.compact] * 3 + [self.expire, self.manifests, self.orphans]
        acts += [self.rollback, self.tag, self.theirs]
        act = self.chance.choice(acts)
        act()
        head = loaded(self.catalog).metadata.current_snapshot_id
        if head is not None:
            self.states[head] = self.now
        return act.__name__

    def append(self) -> None:
        which, rows = self.chance.randrange(2), self.chance.randint(1, 30)
        self.jobs[which].commit(rows)
        jobs = list(self.now.jobs)
        jobs[which] += rows
        self.now = State((jobs[0], jobs[1]), self.now.theirs)

    def theirs(self) -> None:
        """Another engine's row, whose origin nobody knows."""
        table = loaded(self.catalog)
        rows = table.scan().to_arrow().slice(0, 0)
        table.append(rows.from_pylist([{"id": -1 - self.now.theirs, "text": "theirs"}], schema=rows.schema))
        self.now = State(self.now.jobs, self.now.theirs + 1)

    def compact(self) -> None:
        target = self.chance.choice([2_000, 10_000, 128 * 2**20])
        limits = CompactionLimits(self.chance.randint(2, 5), target_bytes=target)
        compact(loaded(self.catalog), limits, merge_manifests=self.chance.choice([None, 2, 5]))

    def manifests(self) -> None:
        replace_files(loaded(self.catalog), Replacement("manifests", merge_manifests=2))

    def expire(self) -> None:
        limits = ExpiryLimits(dt.timedelta(0), self.chance.randint(1, 6), self.chance.randint(1, 20))
        now = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        try:
            expire(lambda: loaded(self.catalog), limits, now)
        except FatalError:
            # Only where the history says that a job was rolled back altogether, and the property does not.
            self.refused += 1
            assert 0 in self.now.jobs

    def orphans(self) -> None:
        later = dt.datetime.now(dt.UTC) + dt.timedelta(days=30)
        if self.now != State():
            remove_orphans(loaded(self.catalog), {}, dt.timedelta(days=1), later)

    def rollback(self) -> None:
        table = loaded(self.catalog)
        snapshot, ancestors = table.current_snapshot(), []
        while snapshot is not None and snapshot.parent_snapshot_id is not None:
            snapshot = table.metadata.snapshot_by_id(snapshot.parent_snapshot_id)
            if snapshot is not None:
                ancestors.append(snapshot.snapshot_id)
        if ancestors:
            back = self.chance.choice(ancestors[:5])
            table.manage_snapshots().rollback_to_snapshot(back).commit()
            self.now = self.states[back]

    def tag(self) -> None:
        table = loaded(self.catalog)
        if table.metadata.current_snapshot_id is not None:
            name = f"tag-{self.chance.randrange(3)}"
            if name not in table.metadata.refs:
                table.manage_snapshots().create_tag(table.metadata.current_snapshot_id, name).commit()

    def check(self) -> None:
        expected = Counter(range(self.now.jobs[0]))
        expected.update(range(FAR, FAR + self.now.jobs[1]))
        expected.update(range(-self.now.theirs, 0))
        assert ids(self.catalog) == expected
        for job, count in zip(self.jobs, self.now.jobs, strict=True):
            assert job.at == count
        audit = self.jobs[0].table.audit()
        assert audit.rows == expected.total()
        assert audit.row_offsets is not None
        found = audit.row_offsets()
        assert found.foreign_rows == self.now.theirs
        assert dict(found.layers) == {
            job.source: [BitMap64(range(count))]
            for job, count in zip(self.jobs, self.now.jobs, strict=True)
            if count
        }
        for name, ref in loaded(self.catalog).metadata.refs.items():
            rows = loaded(self.catalog).scan(snapshot_id=ref.snapshot_id).to_arrow().num_rows
            state = self.states.get(ref.snapshot_id, self.now)
            assert rows == sum(state.jobs) + state.theirs, name


@pytest.mark.parametrize("seeds", sized(1, 40))
@pytest.mark.parametrize("spec", [PLAIN, BUCKETS], ids=["plain", "partitioned"])
def test_whatever_happens_the_table_is_that_of_the_model(
    tmp_path: Path, seeds: int, spec: PartitionSpec
) -> None:
    for seed in range(seeds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        model = Model(folder, spec, seed)
        done: list[str] = []
        for _ in range(35):
            done.append(model.step())
            try:
                model.check()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, after {done}: {error}") from error
