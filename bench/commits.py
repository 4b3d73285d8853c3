"""What a commit costs as a table grows older: `make bench-commits`.

The commits of a job, without Kafka and Spark, to a catalog on SQLite; the offsets of all partitions move each
time. The ratio is of CPU time, because much of a commit's wall time is the disk's; both are shown.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from bench.commit_times import TOPIC, catalog_keys, median_ms, save
from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter
from icestream.connectors.iceberg.table import IcebergTable
from icestream.records.origins import RowOrigins

_ROUNDS: Final = 9
"""The fifth commit of a new table and the next one of the old, in turn; the medians count."""
_LOG_FULL: Final = 110
"""From here on the metadata log has its 100 entries, and only snapshots make metadata grow."""
_RESULTS: Final = Path(__file__).parent / "results" / "commits.json"


@dataclass(frozen=True)
class Growth:
    case: str
    partitions: int
    commits: int
    bytes_a_snapshot: int
    last_metadata_bytes: int
    early_cpu_ms: float
    late_cpu_ms: float
    early_wall_ms: float
    late_wall_ms: float

    @property
    def ratio(self) -> float:
        return self.late_cpu_ms / self.early_cpu_ms


class Job:
    """One table and the job that commits to it."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._folder = folder
        catalog = open_catalog(catalog_keys(folder))
        catalog.create_namespace("bench")
        catalog.create_table("bench.t", Schema(NestedField(1, "id", LongType(), required=True)))
        self._table = IcebergTable(catalog, "bench.t", "job", write_props={})
        self._chance = random.Random(1)
        # Uneven: the busiest partition has three times the records of the idlest.
        self._at = {
            Partition("topic", number): int(1e6 * self._chance.uniform(0.5, 1.5))
            for number in range(partitions)
        }
        self._checkpoint: Checkpoint | None = None

    def commit(self, *, with_file: bool) -> tuple[float, float]:
        """One commit; its seconds of CPU and of wall time."""
        end = {partition: at + self._chance.randrange(20) for partition, at in self._at.items()}
        batch = Batch(str(uuid.uuid4()), Offsets(self._at), Offsets(end))
        counts = {p: Counts(end[p] - at, end[p] - at) for p, at in self._at.items()}
        tables = {"bench.t": str(uuid.UUID(int=1))}
        plan = self._table.plan({})
        files = self._staged() if with_file else []
        cpu, wall = time.process_time(), time.perf_counter()
        after = checkpoint_after(self._checkpoint, batch, counts, TOPIC, tables)
        receipt = self._table.commit(Commit(after, self._checkpoint, plan, Staged(files)))
        taken = time.process_time() - cpu, time.perf_counter() - wall
        self._checkpoint, self._at = receipt.checkpoint, end
        return taken

    def _staged(self) -> list[StagedFile]:
        plan = self._table.plan({})
        writer = StageWriter(plan)
        rows = pa.table({"id": [1]}, schema=plan.arrow_schema)
        writer.write(rows, RowOrigins.of_one(Partition("topic", 0), np.arange(1)))
        return writer.close()

    def metadata_sizes(self) -> list[int]:
        files = self._folder.rglob("*.metadata.json")
        return [file.stat().st_size for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]


def grow(partitions: int, commits: int, *, with_files: bool) -> Growth:
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder), partitions)
        for _ in range(commits - 1):
            job.commit(with_file=with_files)
        rounds = [
            (_fifth(partitions, with_file=with_files), job.commit(with_file=with_files))
            for _ in range(_ROUNDS)
        ]
        sizes = job.metadata_sizes()
    full = min(_LOG_FULL, len(sizes) // 2)
    return Growth(
        case="one file each" if with_files else "offsets only",
        partitions=partitions,
        commits=commits,
        bytes_a_snapshot=(sizes[-1] - sizes[full]) // (len(sizes) - 1 - full),
        last_metadata_bytes=sizes[-1],
        early_cpu_ms=median_ms([early[0] for early, _ in rounds]),
        late_cpu_ms=median_ms([late[0] for _, late in rounds]),
        early_wall_ms=median_ms([early[1] for early, _ in rounds]),
        late_wall_ms=median_ms([late[1] for _, late in rounds]),
    )


def _fifth(partitions: int, *, with_file: bool) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder), partitions)
        for _ in range(4):
            job.commit(with_file=with_file)
        return job.commit(with_file=with_file)


def shown(found: Sequence[Growth]) -> str:
    lines = [
        "| commits | partitions | bytes a snapshot | CPU ms, 5th → last | ratio | wall ms |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.commits}, {one.case} | {one.partitions:,} | {one.bytes_a_snapshot:,} | "
        f"{one.early_cpu_ms} → {one.late_cpu_ms} | {one.ratio:.2f} | "
        f"{one.early_wall_ms} → {one.late_wall_ms} |"
        for one in found
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--save", action="store_true", help=f"write {_RESULTS.name}")
    chosen = parser.parse_args()
    found = [
        grow(partitions, chosen.commits, with_files=with_files)
        for with_files in (False, True)
        for partitions in (1, 1_000)
    ]
    print(shown(found))
    if chosen.save:
        save(found, _RESULTS)


if __name__ == "__main__":
    main()
