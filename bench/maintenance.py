"""What maintenance keeps a table at, and what it costs: `make bench-maintenance`.

A job commits batches of 1,000 records, without Kafka and Spark, to a catalog on SQLite: plan, stage and
commit as in the product, and the product's own schedule of maintenance beside them, in a thread. The same
without maintenance for comparison. At the end batches of the old table and of a new one take turns; the
medians count. The ratio is of CPU time, because much of a commit's wall time is the disk's; both are shown.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from bench.commit_times import TOPIC, catalog_keys, median_ms, save
from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, checkpoint_after
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StageWriter
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.table import IcebergTable
from icestream.jobs.sinks.maintenance import MaintenanceSchedule
from icestream.records.origins import RowOrigins

_ROUNDS: Final = 15
Taken = tuple[float, float]
"""Seconds of CPU and of wall time."""
_RESULTS: Final = Path(__file__).parent / "results" / "maintenance.json"
_SOURCE: Final = Partition("topic", 0)
_SCHEMA: Final = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "time", TimestamptzType()),
    NestedField(3, "bucket", StringType()),
    NestedField(4, "object", StringType()),
)
SPECS: Final = {
    "no partitions": UNPARTITIONED_PARTITION_SPEC,
    "4 partitions": PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket")),
}


@dataclass(frozen=True)
class Kept:
    """A table after its batches."""

    case: str
    is_maintained: bool
    batches: int
    records_a_batch: int
    data_files: int
    manifests: int
    snapshots: int
    metadata_bytes: int
    files_on_disk: int
    first_cpu_ms: float
    last_cpu_ms: float
    first_wall_ms: float
    last_wall_ms: float
    scan_ms: float
    """To plan and read all rows, in PyIceberg."""
    maintenance_seconds: float
    batches_seconds: float
    rewritten_bytes: int
    written_bytes: int
    is_proved: bool
    """Whether the footers have the origin of each record, once."""

    @property
    def ratio(self) -> float:
        return self.last_cpu_ms / self.first_cpu_ms


class Job:
    """One table, and the job that commits to it."""

    def __init__(self, folder: Path, spec: PartitionSpec, keys: dict[str, str]) -> None:
        self._folder = folder
        self.config = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": "topic",
            "iceberg.tables": "bench.t",
            **catalog_keys(folder),
            **keys,
        }
        self._catalog = open_catalog(self.config)
        self._catalog.create_namespace("bench")
        self._catalog.create_table("bench.t", _SCHEMA, partition_spec=spec)
        self._table = IcebergTable(self._catalog, "bench.t", "job", write_props={})
        self._at = 0
        self._checkpoint: Checkpoint | None = None
        self._threads: list[threading.Thread] = []
        plugin = IcebergPlugin()
        self.schedule = MaintenanceSchedule(
            plugin.options(self.config).maintenance,
            lambda target: plugin.maintainer("job", self.config, target),
            time.monotonic,
            lambda: dt.datetime.now(dt.UTC),
            self._aside,
        )
        self.spent = 0.0
        self.rewritten = 0
        self.written = 0

    def _aside(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._noted, args=[work])
        self._threads = [thread]
        thread.start()

    def _noted(self, work: Callable[[], None]) -> None:
        work()
        for run in self.schedule.shown:
            if run["error"]:
                raise RuntimeError(run["error"])
            self.spent += float(str(run["seconds"]))
            steps: Any = run["steps"]
            self.rewritten += steps[0]["removed_bytes"] if steps[0]["name"] == "compaction" else 0

    def batch(self, rows: int) -> tuple[float, float]:
        """One batch, its seconds of CPU and of wall time; maintenance may go on beside it."""
        cpu, wall = time.process_time(), time.perf_counter()
        end = self._at + rows
        plan = self._table.plan({})
        batch = Batch(str(uuid.uuid4()), Offsets({_SOURCE: self._at}), Offsets({_SOURCE: end}))
        writer = StageWriter(plan, batch.id)
        writer.write(_rows(self._at, end, plan.arrow_schema), _origins(self._at, end))
        files = writer.close()
        checkpoint = checkpoint_after(
            self._checkpoint, batch, {_SOURCE: Counts(rows, rows)}, TOPIC, {"bench.t": "id"}
        )
        with self.schedule.turn:
            receipt = self._table.commit(Commit(checkpoint, self._checkpoint, plan, Staged(files)))
        taken = time.process_time() - cpu, time.perf_counter() - wall
        self._checkpoint, self._at = receipt.checkpoint, end
        self.written += sum(file.size for file in files)
        self.schedule.committed(["bench.t"])
        self.schedule.go_on()
        return taken

    def rest(self) -> None:
        """Wait for the maintenance that is under way."""
        for thread in self._threads:
            thread.join()

    def kept(
        self, case: str, batches: int, rows: int, seconds: float, new: Sequence[Taken], old: Sequence[Taken]
    ) -> Kept:
        table = self._catalog.load_table("bench.t")
        head = table.current_snapshot()
        assert head is not None
        started = time.perf_counter()
        count = len(table.scan(selected_fields=("id",)).to_arrow())
        scan = time.perf_counter() - started
        audit = self._table.audit()
        assert audit.row_offsets is not None
        found = audit.row_offsets()
        layers = found.layers[_SOURCE]
        proved = found.foreign_rows == 0 and len(layers) == 1 and len(layers[0]) == self._at == count
        return Kept(
            case=case,
            is_maintained="icestream.maintenance.enabled" in self.config,
            batches=batches,
            records_a_batch=rows,
            data_files=len(list(table.scan().plan_files())),
            manifests=len(head.manifests(table.io)),
            snapshots=len(table.metadata.snapshots),
            metadata_bytes=Path(table.metadata_location.removeprefix("file://")).stat().st_size,
            files_on_disk=sum(1 for path in self._folder.rglob("*") if path.is_file()),
            first_cpu_ms=median_ms([cpu for cpu, _ in new]),
            last_cpu_ms=median_ms([cpu for cpu, _ in old]),
            first_wall_ms=median_ms([wall for _, wall in new]),
            last_wall_ms=median_ms([wall for _, wall in old]),
            scan_ms=round(scan * 1000, 1),
            maintenance_seconds=round(self.spent, 2),
            batches_seconds=round(seconds, 2),
            rewritten_bytes=self.rewritten,
            written_bytes=self.written,
            is_proved=proved,
        )


def _rows(start: int, end: int, schema: pa.Schema) -> pa.Table:
    numbers = np.arange(start, end)
    return pa.table(
        {
            "id": numbers,
            "time": pa.array(numbers * 1000, pa.timestamp("us", "UTC")),
            "bucket": [f"bucket-{number % 7}" for number in numbers],
            "object": [f"logs/{number * 7919 % 1000003:x}/{number:x}.json" for number in numbers],
        },
        schema=schema,
    )


def _origins(start: int, end: int) -> RowOrigins:
    return RowOrigins.of_one(_SOURCE, np.arange(start, end))


def keep(
    case: str, batches: int = 500, rows: int = 1000, *, is_maintained: bool = True, interval_ms: int = 60_000
) -> Kept:
    """All batches as fast as they go, then batches of the old and of a new table in turn."""
    keys = (
        {"icestream.maintenance.enabled": "true", "icestream.maintenance.interval-ms": str(interval_ms)}
        if is_maintained
        else {}
    )
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        job = Job(Path(folder), SPECS[case], keys)
        started = time.perf_counter()
        for _ in range(batches - _ROUNDS):
            job.batch(rows)
        seconds = time.perf_counter() - started
        job.rest()
        fresh = Job(Path(other), SPECS[case], {})
        new: list[Taken] = []
        old: list[Taken] = []
        for number in range(_ROUNDS):
            turns = [(fresh, new), (job, old)]
            for one, taken in turns if number % 2 else reversed(turns):
                taken.append(one.batch(rows))
            job.rest()
        return job.kept(case, batches, rows, seconds, new, old)


def shown(found: Sequence[Kept]) -> str:
    lines = [
        "| table, maintained | data files | manifests | snapshots | metadata | files on disk "
        "| batch, CPU ms, first → last | wall ms | scan | maintenance |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.case}, {'yes' if one.is_maintained else 'no'} | {one.data_files:,} | {one.manifests:,} | "
        f"{one.snapshots:,} | {one.metadata_bytes / 1000:,.0f} kB | {one.files_on_disk:,} | "
        f"{one.first_cpu_ms} → {one.last_cpu_ms} ({one.ratio:.2f}) | "
        f"{one.first_wall_ms} → {one.last_wall_ms} | {one.scan_ms:,.0f} ms | "
        f"{one.maintenance_seconds:.1f} s beside {one.batches_seconds:.0f} s of batches, each byte "
        f"{one.rewritten_bytes / one.written_bytes:.1f} times |"
        for one in found
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--case", action="append", choices=list(SPECS), help="only this table")
    parser.add_argument("--save", action="store_true", help=f"write {_RESULTS.name}")
    chosen = parser.parse_args()
    found = [
        keep(case, chosen.batches, is_maintained=is_maintained)
        for case in chosen.case or SPECS
        for is_maintained in (True, False)
    ]
    print(shown(found))
    if chosen.save:
        save(found, _RESULTS)


if __name__ == "__main__":
    main()
