"""A Delta table and the jobs that write to it, without Kafka and without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable

from icestream.api.batch import Batch, Counts, Failure, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, Receipt, Sink, TargetTask, WriterTask
from icestream.connectors.delta.plugin import DeltaPlugin
from icestream.connectors.delta.table import DeltaSinkTable
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from icestream.tables.plans import NewTablePlan
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk

IDS = TopicIds("cluster", {SOURCE.topic: "id"})
MOST_RUNS = 5


@dataclass(frozen=True)
class StagedBatch:
    plan: Any
    staged: Staged
    failed: Mapping[int, Failure]


@dataclass
class Lake:
    """One table, `ns.t`, below a folder."""

    folder: Path
    config: dict[str, str] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=lambda: dict(CONFIG))

    def __post_init__(self) -> None:
        self.config = {
            "delta.tables": "ns.t",
            "delta.location": str(self.folder),
            "delta.tables.auto-create-enabled": "true",
            "delta.tables.evolve-schema-enabled": "true",
            **self.config,
        }

    @property
    def path(self) -> Path:
        return self.folder / "ns" / "t"

    def sink(self, job: str = "job") -> Sink:
        return DeltaPlugin().open(job, self.config)

    def target(self, job: str = "job") -> DeltaSinkTable:
        (target,) = self.sink(job).targets()
        assert isinstance(target, DeltaSinkTable)
        return target

    def table(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table().to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: int(row["id"]))

    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows()]

    def stage(self, values: Sequence[Any], start: int = 0, job: str = "job") -> StagedBatch:
        """What one task stages of records, after as many runs as new tables and columns take."""
        fields: Mapping[Any, Any] = {}
        target = self.target(job)
        for _ in range(MOST_RUNS):
            plan = target.plan(fields)
            batch = self._run(plan, values, start, job)
            if isinstance(plan, NewTablePlan):
                target.create(batch.staged.new_fields)
                target = self.target(job)
            elif batch.staged.new_fields:
                fields = {**fields, **batch.staged.new_fields}
            else:
                return batch
        raise AssertionError(f"it asks for {fields} again and again")

    def _run(self, plan: Any, values: Sequence[Any], start: int, job: str) -> StagedBatch:
        sink = self.sink(job)
        task = TargetTask("ns.t", plan, Offsets({SOURCE: start}))
        writer = sink.writer(WriterTask([task], f"00000000-0000-0000-0000-{start:012}"))
        texts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in values]
        prepared = record_path_from(RecordSettings.of(self.records)).prepare(chunk(texts, start))
        origins = RowOrigins.of_one(SOURCE, np.arange(start, start + len(texts)))
        written = writer.write(prepared.records, origins)
        return StagedBatch(plan, writer.close()["ns.t"], written.failed)

    def commit_of(self, batch: StagedBatch, start: int, count: int, before: Checkpoint | None) -> Commit:
        ends = Batch(
            f"00000000-0000-0000-0000-{start:012}", Offsets({SOURCE: start}), Offsets({SOURCE: start + count})
        )
        rejected = len(batch.failed)
        counts = {SOURCE: Counts(count, count - rejected, rejected)}
        return Commit(checkpoint_after(before, ends, counts, IDS), before, batch.plan, batch.staged)

    def land(self, values: Sequence[Any], before: Checkpoint | None = None, job: str = "job") -> Checkpoint:
        """Records at the offsets after those of the checkpoint before, in the table."""
        start = before.offsets[SOURCE] if before else 0
        batch = self.stage(values, start, job)
        receipt: Receipt = self.target(job).commit(self.commit_of(batch, start, len(values), before))
        assert receipt.checkpoint is not None
        return receipt.checkpoint

    def with_config(self, more: Mapping[str, str]) -> Lake:
        return replace(self, config={**self.config, **more})


def ids(start: int, until: int) -> list[dict[str, Any]]:
    return [{"id": number, "text": f"t{number}"} for number in range(start, until)]
