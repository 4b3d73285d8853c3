"""`python -m bench.task`, which `make bench-task` calls: the CPU of a task's work, from Kafka to data files.

No Spark and no commit: each run is a process of its own that reads a loaded topic as a Python worker of Spark
does, in batches. CPU time tells more than speed on a machine that others use, and ways that take turns are
slowed alike. A way is another checkout of this repository, other environment variables, or both:

    python -m bench.task --way "before=/path/to/checkout" --way "malloc=.,GLIBC_TUNABLES="
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

TOPIC: Final = "apilogs"
_PARTITIONS: Final = 3
_WARM_ROWS: Final = 30_000
_BATCH_ROWS: Final = 250_000
"""What one of two tasks has of a first batch."""
_ALONE: Final = (sys.executable, "-m", "bench.task", "--alone")
_CONFIG: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "iceberg.tables.evolve-schema-enabled": "true",
}


@dataclass(frozen=True)
class Way:
    """A checkout and variables of the environment to run with."""

    name: str
    folder: Path
    environment: Mapping[str, str]

    @classmethod
    def parsed(cls, text: str) -> Way:
        name, _, rest = text.partition("=")
        folder, *variables = rest.split(",")
        return cls(name, Path(folder or ".").absolute(), dict(one.split("=", 1) for one in variables))

    def run(self, bootstrap: str, records: int) -> dict[str, float]:
        answer = subprocess.run(
            [
                sys.executable,
                "-m",
                "bench.task",
                "--alone",
                "--bootstrap",
                bootstrap,
                "--records",
                str(records),
            ],
            cwd=self.folder,
            env={**os.environ, **self.environment, "PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            check=True,
        )
        found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
        return found


@click.command()
@click.option("--records", default=600_000, show_default=True, type=click.IntRange(min=1))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--way", "ways", multiple=True, help="NAME=FOLDER[,VARIABLE=VALUE...]; may be repeated.")
@click.option("--bootstrap", help="A broker with a loaded topic; without it one is started and loaded.")
@click.option("--alone", is_flag=True, hidden=True)
def main(records: int, rounds: int, ways: Sequence[str], bootstrap: str | None, alone: bool) -> None:
    """CPU-seconds that one task takes for a million records; ways to do it take turns."""
    if alone:
        assert bootstrap is not None
        _set_as_in_spark()
        print(json.dumps(measured(bootstrap, records)))
        return
    chosen = [Way("here", Path.cwd(), {}), *map(Way.parsed, ways)]
    found: dict[str, list[dict[str, float]]] = {way.name: [] for way in chosen}
    with ExitStack() as stack:
        place = bootstrap or _loaded_broker(stack, records)
        for number in range(rounds):
            for way in chosen if number % 2 == 0 else reversed(chosen):
                found[way.name].append(way.run(place, records))
    Console().print(_shown(found))


def _set_as_in_spark() -> None:
    """Begin anew with the variables that Python workers of Spark get; those of a way stay as they are."""
    from icestream.pipeline.session import spark_settings

    prefix = "spark.executorEnv."
    lacking = {
        key.removeprefix(prefix): value
        for key, value in spark_settings({}).items()
        if key.startswith(prefix) and key.removeprefix(prefix) not in os.environ
    }
    if lacking:
        program = [sys.executable, "-m", "bench.task", *sys.argv[1:]]
        os.execve(sys.executable, program, {**os.environ, **lacking})


def _loaded_broker(stack: ExitStack, records: int) -> str:
    from icestream.embedded import kafka, loadgen
    from icestream.embedded.topics import ensure_topic

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="icestream-bench-"))
    broker = stack.enter_context(kafka.running_broker(Path(folder) / "kafka"))
    ensure_topic(broker.bootstrap, TOPIC, _PARTITIONS)
    loadgen.produce(broker.bootstrap, TOPIC, "api", records)
    return broker.bootstrap


def measured(bootstrap: str, records: int) -> dict[str, float]:
    """In this process: CPU and memory of the work of one task."""
    from icestream.kafka.reader import process_reader
    from icestream.pipeline.plan import BatchPlan
    from icestream.pipeline.record_path import process_record_path
    from icestream.pipeline.task import settle_process, task_result

    def result(plan: BatchPlan) -> Any:
        return task_result(plan, 0, process_reader(plan.kafka), process_record_path(plan.records))

    settle_process()
    with tempfile.TemporaryDirectory(prefix="icestream-bench-") as folder:
        plan_of = _plans(bootstrap, Path(folder))
        result(plan_of(0, min(records, _WARM_ROWS)))
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        rows = 0
        for low in range(0, records, _BATCH_ROWS):
            taken = result(plan_of(low, min(records, low + _BATCH_ROWS)))
            rows += sum(counts.written for table in taken.staged.values() for counts in table.counts.values())
        after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - began
    millions = rows / 1e6
    return {
        "user": (after.ru_utime - before.ru_utime) / millions,
        "system": (after.ru_stime - before.ru_stime) / millions,
        "seconds": seconds / millions,
        "peak_mb": after.ru_maxrss / 1000,
    }


def _plans(bootstrap: str, folder: Path) -> Any:
    """Makes the plan of a batch from so many records of the topic to so many."""
    from bench.table import API_LOG
    from icestream.api.batch import Slice
    from icestream.api.offsets import Partition
    from icestream.api.sink import SinkPlan, TargetTask
    from icestream.connectors.iceberg.catalogs.opening import open_catalog
    from icestream.connectors.iceberg.table import IcebergTable
    from icestream.connectors.iceberg.writer import IcebergWriter
    from icestream.embedded.minio_tables import sqlite_catalog
    from icestream.pipeline.plan import BatchPlan
    from icestream.pipeline.record_path import RecordSettings
    from icestream.rows.new_columns import GrowthLimit

    catalog = open_catalog(sqlite_catalog(str(folder)))
    API_LOG.create(catalog)
    table = IcebergTable(catalog, API_LOG.table, "bench", write_props={}, growth=GrowthLimit()).plan({})
    sink = SinkPlan(IcebergWriter, [TargetTask(table.name, table)])
    records = RecordSettings.of(_CONFIG)

    def plan(low: int, high: int) -> BatchPlan:
        slices = [
            Slice(Partition(TOPIC, number), low // _PARTITIONS, high // _PARTITIONS)
            for number in range(_PARTITIONS)
        ]
        kafka = {"bootstrap.servers": bootstrap}
        return BatchPlan(kafka, records, sink, [slices], batch=str(low))

    return plan


def _shown(found: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    table = Table("", "CPU-s a million", "user", "system", "elapsed", "peak MB", "CPU ÷ first", "runs")
    cpu = {name: [one["user"] + one["system"] for one in runs] for name, runs in found.items()}
    first = next(iter(cpu.values()))
    for name, runs in found.items():
        ratio = statistics.median(mine / theirs for mine, theirs in zip(cpu[name], first, strict=True))
        table.add_row(
            name,
            f"{statistics.median(cpu[name]):.2f}",
            *(f"{statistics.median(one[key] for one in runs):.2f}" for key in ("user", "system", "seconds")),
            f"{statistics.median(one['peak_mb'] for one in runs):.0f}",
            f"{ratio:.3f}",
            " ".join(f"{one:.2f}" for one in cpu[name]),
        )
    return table


if __name__ == "__main__":
    main()
