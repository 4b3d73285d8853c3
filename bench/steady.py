"""`python -m bench.steady`, which `make bench-steady` calls: even rates, a commit every second, both sides in
turn."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Screen

from bench import machine, page
from bench.machine import Foreign
from bench.sides import CONTROL_TOPIC, HEAP, TASKS, Side, connector_config, ours, theirs
from bench.steady_load import PARTITIONS, Sent, number_of
from bench.table import BenchTable
from bench.worker import RunFailed, Worker, running_worker
from bench.working_folder import working_folder
from icestream.api.errors import IcestreamError
from icestream.embedded import kafka
from icestream.embedded.java import java

RESULTS: Final = Path(__file__).parent / "results" / "steady.json"
INTERVAL_MS: Final = 1000
_LOOK_S: Final = 0.02
_AFTER_S: Final = 90.0
"""How long rows are waited for after the last record was sent."""


@dataclass(frozen=True)
class Steady:
    """One side at one rate. Latencies are of the records after the warm-up, from produce to visible."""

    side: str
    rate: int
    records: int
    visible: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    behind_seconds: float
    """From the last record's produce to the moment when all were visible."""
    cpu_percent: float
    """Of one core, from the end of the warm-up until all were visible."""
    cpu_seconds_per_million: float
    peak_memory_mb: float
    files: int
    commits: int
    foreign_share: float

    @property
    def keeps_up(self) -> bool:
        return self.visible == self.records and self.behind_seconds < 10


@dataclass(frozen=True)
class Options:
    rates: Sequence[int]
    seconds: float
    warm_up: float


@click.command()
@click.option("--rates", default="5000,15000,35000", show_default=True, help="Records a second, in turn.")
@click.option("--seconds", default=60.0, show_default=True, help="How long each rate is measured.")
@click.option("--warm-up", default=8.0, show_default=True, help="Seconds before that which do not count.")
@click.option("--side", default="both", type=click.Choice(["ours", "theirs", "both"]), show_default=True)
@click.option("--save/--no-save", default=True, show_default=True, help="Write results when both ran.")
def main(rates: str, seconds: float, warm_up: float, side: str, save: bool) -> None:
    """Send records at even rates to Icestream and to the real Kafka Connect, a commit every second.

    Example: python -m bench.steady --rates 5000 --seconds 15 --side ours
    """
    console = Console()
    signal.signal(signal.SIGTERM, _interrupted)
    options = Options([int(rate) for rate in rates.split(",")], seconds, warm_up)
    try:
        runs = _measure(side, options, console)
    except (IcestreamError, RunFailed) as error:
        console.print(f"bench: {error}", style="red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("bench: interrupted; nothing is left running")
        sys.exit(130)
    console.print(screen(runs))
    if save and side == "both":
        document = as_json(runs, options)
        RESULTS.write_text(json.dumps(document, indent=2) + "\n")
        page.publish("steady", section(document))
        console.print(f"written: {RESULTS.parent.name}/{RESULTS.name} and {page.PAGE.name}")


def _interrupted(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _measure(chosen: str, options: Options, console: Console) -> list[Steady]:
    sides = [*([ours()] if chosen != "theirs" else []), *([theirs()] if chosen != "ours" else [])]
    runs = []
    for rate in options.rates:
        for side in sides:
            # A broker of its own for each run: the topics of the others are not on its disk and in its cache.
            with (
                console.status(f"{rate:,} records/s: {side.title}"),
                working_folder("steady", 8_000) as folder,
                kafka.running_broker(folder / "kafka") as broker,
            ):
                runs.append(_run(side, rate, broker, folder, options))
    return runs


def _run(side: Side, rate: int, broker: kafka.Broker, folder: Path, options: Options) -> Steady:
    from icestream.embedded.topics import ensure_topic

    topic = f"steady-{rate}"
    ensure_topic(broker.bootstrap, topic, PARTITIONS)
    ensure_topic(broker.bootstrap, CONTROL_TOPIC, 1)
    table = BenchTable(folder)
    table.create()
    name = f"steady-{side.name}-{rate}"
    config = connector_config(side, table, topic=topic, evolve_schema=True, interval_ms=INTERVAL_MS)
    with running_worker(side, folder, broker.bootstrap) as worker:
        worker.create(name, config)
        worker.wait_until_running(name)
        watched = _load(worker, name, table, broker, topic, rate, folder, options)
    return _steady(side, rate, table, watched, options)


@dataclass(frozen=True)
class Watched:
    sent: Sent
    pointers: Mapping[str, float]
    """When each state of the table was first seen, by its metadata file."""
    all_visible_at: float
    cpu_seconds: float
    cpu_span: float
    peak_memory: int
    foreign_share: float


def _load(
    worker: Worker,
    name: str,
    table: BenchTable,
    broker: kafka.Broker,
    topic: str,
    rate: int,
    folder: Path,
    options: Options,
) -> Watched:
    seconds, file = options.seconds + options.warm_up, folder / "sent"
    command = [
        sys.executable,
        "-m",
        "bench.steady_load",
        broker.bootstrap,
        topic,
        str(rate),
        str(seconds),
        file,
    ]
    reaped = machine.reaped()
    load = subprocess.Popen([str(part) for part in command])
    began = time.monotonic()
    pointers: dict[str, float] = {}
    marked = last = checked = 0.0
    foreign = None
    total = int(rate * seconds)
    try:
        while True:
            now = time.monotonic()
            pointer = table.pointer()
            if pointer not in pointers:
                pointers[pointer] = last = now
            if foreign is None and now - began >= options.warm_up:
                worker.meter.mark()
                foreign, marked = Foreign([broker.pid]), now
            if load.poll() is None and now - began > seconds + _AFTER_S:
                raise RunFailed(f"the broker does not take {rate:,} records a second")
            if load.poll() is not None:
                if load.returncode:
                    raise RunFailed("the load ended with an error")
                # Reading the table takes CPU that the side may need: only once nothing more is sent.
                if (
                    now - checked > 1.0 and table.visible_rows() >= total
                ) or now - began > seconds + _AFTER_S:
                    break
                if now - checked > 1.0:
                    checked = now
                    worker.check(name)
            time.sleep(_LOOK_S)
    finally:
        if load.poll() is None:
            load.kill()
        load.wait()
    pointers.setdefault(table.pointer(), time.monotonic())
    cpu = worker.meter.read()
    share = foreign.share(cpu.cpu_seconds + machine.reaped() - reaped) if foreign else 0.0
    return Watched(
        Sent.read(file),
        pointers,
        last,
        cpu.cpu_seconds,
        time.monotonic() - marked,
        cpu.peak_memory_bytes,
        share,
    )


def _steady(side: Side, rate: int, table: BenchTable, watched: Watched, options: Options) -> Steady:
    sent = np.frombuffer(watched.sent.times(), dtype=np.float64)
    seen = np.full(len(sent), np.nan)
    for at, requests in table.appended(watched.pointers):
        numbers = np.fromiter((number_of(one) for one in requests), np.int64, len(requests))
        if np.isfinite(seen[numbers]).any() or len(np.unique(numbers)) < len(numbers):
            raise RunFailed(f"{side.title} wrote a record twice; this run counts for nothing")
        seen[numbers] = at
    visible = int(np.isfinite(seen).sum())
    counted = np.flatnonzero(sent >= sent[0] + options.warm_up)
    # A record that is not there yet has waited at least until now.
    latest = max(watched.all_visible_at, float(sent[-1]) + _AFTER_S if visible < len(sent) else 0.0)
    waited = (np.where(np.isfinite(seen), seen, latest) - sent)[counted] * 1000
    content = table.sizes()
    return Steady(
        side=side.name,
        rate=rate,
        records=len(sent),
        visible=visible,
        p50_ms=round(float(np.percentile(waited, 50))),
        p99_ms=round(float(np.percentile(waited, 99))),
        worst_ms=round(float(waited.max())),
        behind_seconds=round(latest - float(sent[-1]), 1),
        cpu_percent=round(100 * watched.cpu_seconds / watched.cpu_span, 1),
        cpu_seconds_per_million=round(watched.cpu_seconds * 1e6 / len(counted), 1),
        peak_memory_mb=round(watched.peak_memory / 2**20),
        files=content[0],
        commits=content[1],
        foreign_share=round(watched.foreign_share, 3),
    )


def screen(runs: Sequence[Steady]) -> Screen:
    table = Screen(title="Steady rates, a commit every second")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for run in runs:
        table.add_row(*cells(run), style=None if run.keeps_up else "yellow")
    return table


HEADINGS: Final = (
    "records/s",
    "side",
    "P50, ms",
    "P99, ms",
    "behind at the end, s",
    "CPU, % of a core",
    "peak memory, MB",
    "files",
    "commits",
)


def cells(run: Steady) -> list[str]:
    """One line of the page and of the terminal."""
    return [
        f"{run.rate:,}",
        {"ours": "Icestream", "theirs": "Kafka Connect"}[run.side],
        f"{run.p50_ms:,.0f}",
        f"{run.p99_ms:,.0f}",
        f"{run.behind_seconds:.1f}",
        f"{run.cpu_percent:.0f}",
        f"{run.peak_memory_mb:,.0f}",
        f"{run.files:,}",
        f"{run.commits:,}",
    ]


def section(document: Mapping[str, Any]) -> str:
    """What the page says of a results file."""
    runs = [Steady(**run) for run in document["runs"]]
    others = max(run.foreign_share for run in runs)
    where = f"{document['machine']['cores']} cores, {document['machine']['memory_gb']} GB"
    settings = document["settings"]
    return (
        f"Measured on {document['measured_on']}, {where}; {settings['seconds']:.0f} s per rate after "
        f"{settings['warm_up']:.0f} s that do not count; others used up to {others:.0%} of the "
        f"machine.\n\n{page.table(HEADINGS, (cells(run) for run in runs))}"
    )


def as_json(runs: Sequence[Steady], options: Options) -> dict[str, Any]:
    return {
        "measured_on": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine.machine(),
        "versions": machine.versions(java()),
        "settings": {
            "commit_interval_ms": INTERVAL_MS,
            "tasks_max": TASKS,
            "heap": HEAP,
            "partitions": PARTITIONS,
            **asdict(options),
        },
        "runs": [asdict(run) for run in runs],
    }


if __name__ == "__main__":
    main()
