"""`python -m bench.scale`, which `make bench-scale` calls: what many idle connectors cost one worker.

One topic, one table and one connector each; the worker starts with all of them, as after a restart.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import psutil  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table as Screen

from bench import counted, machine, page
from bench.kafka_meter import KafkaMeter, metered
from bench.machine import Foreign
from bench.sides import HEAP, Side
from bench.table import rows_of
from bench.worker import RunFailed, Worker, running_worker
from bench.working_folder import working_folder
from icestream.api.errors import IcestreamError
from icestream.embedded import kafka, ports
from icestream.embedded.java import java

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

RESULTS: Final = Path(__file__).parent / "results" / "scale.json"
INTERVAL_MS: Final = 1000
GOALS: Final = {
    "cpu_percent": 10.0,
    "memory_mb": 4096.0,
    "connections": 200.0,
    "record_ms": INTERVAL_MS + 2000.0,
    "healthy_seconds": 60.0,
}
_READY_S: Final = 600.0
_POLL_S: Final = 0.01
_PATIENCE_S: Final = 120.0
_CATALOG: Final = "scale"


@dataclass(frozen=True)
class Idle:
    """What one worker took; times in seconds from its start, rates per second while nothing came."""

    connectors: int
    healthy_seconds: float
    ready_seconds: float
    """Until every connector knows where it stands."""
    cpu_percent: float
    """Of one core."""
    memory_mb: float
    threads: int
    connections: int
    kafka_connections: int
    kafka_requests: dict[str, float]
    kafka_requests_a_second: float
    catalog_statements_a_second: float
    record_ms: list[float]
    """From producing one record to its row, each in another connector that had rested."""
    foreign_share: float


@dataclass(frozen=True)
class Options:
    seconds: float
    settle: float
    records: int


@click.command()
@click.option("--connectors", "counts", default="1,100,1000", show_default=True, help="How many, in turn.")
@click.option("--seconds", default=60.0, show_default=True, help="How long an idle worker is measured.")
@click.option("--settle", default=45.0, show_default=True, help="How long it is left alone before that.")
@click.option("--records", default=9, show_default=True, help="Single records for the latency.")
@click.option("--save/--no-save", default=True, show_default=True, help="Write bench/results/scale.json.")
def main(counts: str, seconds: float, settle: float, records: int, save: bool) -> None:
    """Start a worker with many idle Iceberg connectors and measure what they cost.

    Example: python -m bench.scale --connectors 100 --seconds 20 --no-save
    """
    console = Console()
    signal.signal(signal.SIGTERM, _interrupted)
    options = Options(seconds, settle, records)
    try:
        runs = [_measure(int(count), options, console) for count in counts.split(",")]
    except (IcestreamError, RunFailed) as error:
        console.print(f"bench: {error}", style="red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("bench: interrupted; nothing is left running")
        sys.exit(130)
    console.print(screen(runs))
    if save:
        document = as_json(runs, options)
        RESULTS.write_text(json.dumps(document, indent=2) + "\n")
        page.publish("scale", section(document))
        console.print(f"written: {RESULTS.parent.name}/{RESULTS.name} and {page.PAGE.name}")


def _interrupted(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _measure(count: int, options: Options, console: Console) -> Idle:
    with working_folder("scale", 4_000) as folder:
        port = ports.free_port()
        with (
            metered(port) as meter,
            kafka.running_broker(folder / "kafka", port, advertised=meter.port) as broker,
        ):
            tables = Tables(folder)
            with console.status(f"{count} topics and tables"):
                _create_topics(broker.bootstrap, count)
                tables.create(count)
            return _run(count, tables, meter, broker.pid, folder, options, console)


def topic_of(number: int) -> str:
    return f"scale-{number:04}"


def _create_topics(bootstrap: str, count: int) -> None:
    """All, and wait until the broker leads every one of them."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    from icestream.api.offsets import Partition
    from icestream.kafka.watch import KafkaLooks

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    names = [topic_of(number) for number in range(count)]
    for first in range(0, count, 100):
        for created in admin.create_topics(
            [NewTopic(name, 1, 1) for name in names[first : first + 100]]
        ).values():
            created.result(120)
    looks = KafkaLooks({"bootstrap.servers": bootstrap})
    wanted = [Partition(name, 0) for name in names]
    deadline = time.monotonic() + _READY_S
    while len(looks.topics()) < count or len(looks.ends(wanted)) < count:
        if time.monotonic() > deadline:
            raise RunFailed(f"the broker does not lead all of {count} topics")
        time.sleep(0.5)


class Tables:
    """One small table per connector in one SQLite catalog."""

    def __init__(self, folder: Path) -> None:
        self._database = folder / "catalog.db"
        self._warehouse = folder / "warehouse"

    def settings(self, number: int) -> dict[str, str]:
        return {
            "iceberg.tables": f"scale.t{number:04}",
            "iceberg.catalog": _CATALOG,
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{self._database}",
            "iceberg.catalog.warehouse": self._warehouse.as_uri(),
        }

    def create(self, count: int) -> None:
        from pyiceberg.schema import Schema
        from pyiceberg.types import LongType, NestedField, StringType

        self._warehouse.mkdir()
        catalog = self._opened()
        catalog.create_namespace("scale")
        schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
        for number in range(count):
            catalog.create_table(f"scale.t{number:04}", schema)

    def pointer(self, number: int) -> str:
        connection = sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True, timeout=10)
        try:
            asked = (
                "select metadata_location from iceberg_tables where table_namespace='scale' and table_name=?"
            )
            return str(connection.execute(asked, (f"t{number:04}",)).fetchone()[0])
        finally:
            connection.close()

    def rows(self, number: int) -> int:
        return rows_of(self._opened().load_table(f"scale.t{number:04}"))

    def _opened(self) -> SqlCatalog:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(_CATALOG, uri=f"sqlite:///{self._database}", warehouse=self._warehouse.as_uri())


def _write_state(file: Path, count: int, tables: Tables) -> None:
    """The connectors as a worker keeps them, so that it starts as after a restart."""
    connectors = {
        topic_of(number): {
            "config": {
                "name": topic_of(number),
                "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
                "topics": topic_of(number),
                "iceberg.control.topic": "control-iceberg",
                "iceberg.control.commit.interval-ms": str(INTERVAL_MS),
                **tables.settings(number),
            },
            "target_state": "STARTED",
        }
        for number in range(count)
    }
    file.write_text(json.dumps({"format": 1, "connectors": connectors}))


def _run(
    count: int,
    tables: Tables,
    meter: KafkaMeter,
    broker_pid: int,
    folder: Path,
    options: Options,
    console: Console,
) -> Idle:
    statements, state = folder / "statements", folder / "state.json"
    counted.make(statements)
    _write_state(state, count, tables)
    side = Side(
        name="scale",
        title="Icestream",
        command=lambda file: [
            sys.executable,
            "-m",
            "bench.counted",
            str(statements),
            "standalone",
            str(file),
        ],
        worker={"spark.driver.memory": HEAP, "icestream.state.file": str(state)},
    )
    began = time.monotonic()
    bootstrap = f"{ports.HOST}:{meter.port}"
    with console.status(f"{count} connectors") as status, running_worker(side, folder, bootstrap) as worker:
        healthy = time.monotonic() - began
        status.update(f"{count} connectors: healthy after {healthy:.0f} s, waiting for all of them")
        _wait(lambda: meter.counts()["InitProducerId"] >= count, worker, "connectors to find their standing")
        ready = time.monotonic() - began
        status.update(f"{count} connectors: ready after {ready:.0f} s, settling")
        time.sleep(options.settle)
        status.update(f"{count} connectors: measuring")
        idle = _idle(worker, meter, statements, broker_pid, options.seconds)
        status.update(f"{count} connectors: one record at a time")
        latencies = _latencies(bootstrap, count, tables, worker, options.records)
    return Idle(
        connectors=count,
        healthy_seconds=round(healthy, 1),
        ready_seconds=round(ready, 1),
        record_ms=latencies,
        **idle,
    )


def _wait(holds: Callable[[], bool], worker: Worker, what: str) -> None:
    deadline = time.monotonic() + _READY_S
    while not holds():
        if time.monotonic() > deadline:
            raise RunFailed(f"waited {_READY_S:.0f} s for {what}")
        worker.check_alive()
        time.sleep(0.2)


def _idle(
    worker: Worker, meter: KafkaMeter, statements: Path, broker_pid: int, seconds: float
) -> dict[str, Any]:
    requests, asked = meter.counts(), counted.read(statements)
    foreign = Foreign([broker_pid])
    worker.meter.mark()
    time.sleep(seconds)
    cpu = worker.meter.cpu_since_mark()
    share = foreign.share(cpu)
    made = {kind: count / seconds for kind, count in (meter.counts() - requests).items()}
    catalog = (counted.read(statements) - asked) / seconds
    living = worker.meter.living()
    connections = [
        connection
        for process in living
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_ESTABLISHED
    ]
    return {
        "cpu_percent": round(100 * cpu / seconds, 1),
        "memory_mb": round(worker.meter.memory_now() / 2**20),
        "threads": sum(process.num_threads() for process in living),
        "connections": len(connections),
        "kafka_connections": sum(one.raddr.port == meter.port for one in connections),
        "kafka_requests": {kind: round(rate, 2) for kind, rate in sorted(made.items())},
        "kafka_requests_a_second": round(sum(made.values()), 1),
        "catalog_statements_a_second": round(catalog, 2),
        "foreign_share": round(share, 3),
    }


def _latencies(bootstrap: str, count: int, tables: Tables, worker: Worker, records: int) -> list[float]:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", "log_level": 0})
    taken = []
    for turn in range(records):
        number = turn * max(1, count // records) % count
        topic, before = topic_of(number), tables.pointer(number)
        rows = tables.rows(number)
        # The client learns of the topic before the clock starts.
        producer.list_topics(topic, timeout=30)
        started = time.monotonic()
        producer.produce(topic, json.dumps({"id": turn, "name": topic}).encode())
        producer.poll(0)
        while tables.pointer(number) == before:
            if time.monotonic() - started > _PATIENCE_S:
                worker.check(topic)
                raise RunFailed(f"a record of {topic} is not visible after {_PATIENCE_S:.0f} s")
            time.sleep(_POLL_S)
        taken.append(round((time.monotonic() - started) * 1000))
        if tables.rows(number) != rows + 1:
            raise RunFailed(f"the table of {topic} has {tables.rows(number)} rows, not {rows + 1}")
    return taken


def screen(runs: Sequence[Idle]) -> Screen:
    table = Screen(title="One worker with idle connectors")
    table.add_column("")
    for run in runs:
        table.add_column(f"{run.connectors:,}", justify="right")
    table.add_column("goal", justify="right")
    for label, cells, goal in lines(runs):
        table.add_row(label, *cells, goal)
    return table


def lines(runs: Sequence[Idle]) -> list[tuple[str, list[str], str]]:
    """The figures as the page and the terminal show them."""
    shown: list[tuple[str, Callable[[Idle], str], str]] = [
        ("CPU, % of one core", lambda run: f"{run.cpu_percent:.1f}", f"< {GOALS['cpu_percent']:.0f}"),
        ("memory, MB", lambda run: f"{run.memory_mb:,.0f}", f"< {GOALS['memory_mb']:,.0f}"),
        ("threads", lambda run: f"{run.threads:,}", ""),
        ("TCP connections", lambda run: f"{run.connections:,}", f"< {GOALS['connections']:.0f}"),
        ("requests to Kafka a second", lambda run: f"{run.kafka_requests_a_second:.1f}", ""),
        ("SQL statements of the catalog a second", lambda run: f"{run.catalog_statements_a_second:.2f}", ""),
        (
            "one record to its row, ms (median, worst)",
            lambda run: (
                f"{sorted(run.record_ms)[len(run.record_ms) // 2]:,.0f}, {max(run.record_ms):,.0f}"
                if run.record_ms
                else "–"
            ),
            f"< {GOALS['record_ms']:,.0f}",
        ),
        ("healthy after, s", lambda run: f"{run.healthy_seconds:.0f}", f"< {GOALS['healthy_seconds']:.0f}"),
        ("all connectors ready after, s", lambda run: f"{run.ready_seconds:.0f}", ""),
    ]
    return [(label, [show(run) for run in runs], goal) for label, show, goal in shown]


def section(document: Mapping[str, Any]) -> str:
    """What the page says of a results file."""
    runs = [Idle(**run) for run in document["runs"]]
    headings = ["idle connectors", *(f"{run.connectors:,}" for run in runs), "goal"]
    others = max(run.foreign_share for run in runs)
    where = f"{document['machine']['cores']} cores, {document['machine']['memory_gb']} GB"
    return (
        f"Measured on {document['measured_on']}, {where}; others used up to {others:.0%} of the machine.\n\n"
        + page.table(headings, ([label, *cells, goal] for label, cells, goal in lines(runs)))
    )


def as_json(runs: Sequence[Idle], options: Options) -> dict[str, Any]:
    return {
        "measured_on": f"{datetime.now(UTC):%Y-%m-%d}",
        "goals": GOALS,
        "machine": machine.machine(),
        "versions": machine.versions(java()),
        "settings": {"commit_interval_ms": INTERVAL_MS, "heap": HEAP, **asdict(options)},
        "runs": [asdict(run) for run in runs],
    }


if __name__ == "__main__":
    main()
