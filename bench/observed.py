"""`python -m bench.observed`, which `make bench-observed` calls: what watching a worker costs it.

One topic is drained by two workers in turn. One is watched by all there is: scraped every second, in both
formats by turns, batches kept for the console, logs as JSON, traces sent where somebody takes them.
The other tells nobody anything: no observer hears of its batches (`bench/unobserved.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import click
import httpx
from rich.console import Console

from bench import machine
from bench.rounds import Drained, Load, drain, in_turn
from bench.sides import CONTROL_TOPIC, HEAP, Side, ours
from bench.worker import RunFailed
from icestream.api.errors import IcestreamError
from icestream.cluster.settings.worker_settings import STANDALONE
from icestream.embedded import kafka, loadgen, ports
from icestream.embedded.home import home
from icestream.embedded.topics import ensure_topic

TOPIC: Final = "apilogs"
RESULTS: Final = Path(__file__).parent / "results" / "observed.json"
LEAST: Final = 0.98
"""The part of its speed that a worker keeps when it is watched."""
_EVERY_S: Final = 1.0
_OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0"


@dataclass(frozen=True)
class Cost:
    """Medians over the rounds."""

    records: int
    rounds: int
    watched: float
    """Records a second."""
    unobserved: float
    cpu_watched: float
    """Seconds of CPU for a million records."""
    cpu_unobserved: float
    scrapes: int
    scrape_seconds: float
    """Of one, in the median."""
    scrape_bytes: int

    @property
    def drain_ratio(self) -> float:
        return self.watched / self.unobserved

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_watched / self.cpu_unobserved


def cost_of(runs: Sequence[Drained], scrapes: Sequence[Scrape]) -> Cost:
    def median(side: str, fact: str) -> float:
        return statistics.median(getattr(run, fact) for run in runs if run.side == side)

    return Cost(
        records=runs[0].records,
        rounds=max(run.round for run in runs),
        watched=median("watched", "rate"),
        unobserved=median("unobserved", "rate"),
        cpu_watched=median("watched", "cpu_per_million"),
        cpu_unobserved=median("unobserved", "cpu_per_million"),
        scrapes=len(scrapes),
        scrape_seconds=statistics.median(one.seconds for one in scrapes) if scrapes else 0.0,
        scrape_bytes=int(statistics.median(one.size for one in scrapes)) if scrapes else 0,
    )


@dataclass(frozen=True)
class Scrape:
    seconds: float
    size: int


@dataclass
class Scraper:
    """Asks a worker every second, as long as it is there."""

    port: int
    scrapes: list[Scrape] = field(default_factory=list)
    _done: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="scraper", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _run(self) -> None:
        formats = itertools.cycle(("", _OPENMETRICS))
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=30) as client:
            while not self._done.wait(_EVERY_S):
                # No worker answers while it is the other one's turn.
                with contextlib.suppress(httpx.TransportError):
                    answer = client.get("/metrics", headers={"Accept": next(formats)})
                    self.scrapes.append(Scrape(answer.elapsed.total_seconds(), len(answer.content)))


def watched_side(metrics_port: int, traces_url: str) -> Side:
    wanted = {
        "metrics.listeners": f"http://127.0.0.1:{metrics_port}",
        "icestream.log.format": "json",
        "icestream.traces.endpoint": traces_url,
    }
    known = set(STANDALONE.names)
    worker = {"spark.driver.memory": HEAP, **{key: value for key, value in wanted.items() if key in known}}
    return Side("watched", "watched", ours().command, worker)


def unobserved_side() -> Side:
    command = [sys.executable, "-m", "bench.unobserved", "standalone"]
    worker = {
        "spark.driver.memory": HEAP,
        "icestream.metrics.rest.enabled": "false",
        "icestream.console": "off",
    }
    return Side("unobserved", "unobserved", lambda properties: [*command, str(properties)], worker)


@contextmanager
def trace_taker() -> Iterator[str]:
    """Somebody who takes traces, and says so; yields where."""

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", "0")))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/traces"
        finally:
            server.shutdown()


def measure(records: int, rounds: int, console: Console) -> Cost:
    scraper = Scraper(ports.free_port())
    with (
        tempfile.TemporaryDirectory(prefix="bench-observed-", dir=home()) as folder,
        kafka.running_broker(Path(folder) / "kafka") as broker,
        trace_taker() as traces,
        scraper.running(),
    ):
        ensure_topic(broker.bootstrap, TOPIC, 3)
        ensure_topic(broker.bootstrap, CONTROL_TOPIC, 1)
        with console.status("loading the topic"):
            loadgen.produce(broker.bootstrap, TOPIC, "api", records, on_progress=lambda sent: None)
        load = Load(broker.bootstrap, TOPIC, records, broker.pid, evolve_schema=True)
        sides = [watched_side(scraper.port, traces), unobserved_side()]
        runs = []
        for number, side in in_turn(sides, rounds):
            with console.status(f"round {number}: {side.title}"):
                run = drain(side, number, load, Path(folder) / f"{number}-{side.name}", lambda rows: None)
            runs.append(run)
            console.print(f"round {number}: {side.title:<12} {run.rate:>10,.0f} records/s")
    return cost_of(runs, scraper.scrapes)


def as_json(cost: Cost) -> Mapping[str, object]:
    ratios = {"drain": round(cost.drain_ratio, 4), "cpu": round(cost.cpu_ratio, 4)}
    return {
        "measured_on": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine.machine(),
        "ratio": ratios,
        **asdict(cost),
    }


@click.command()
@click.option("--records", default=2_000_000, show_default=True, type=click.IntRange(min=1))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--save/--no-save", default=False, show_default=True, help="Write bench/results/observed.json.")
def main(records: int, rounds: int, save: bool) -> None:
    """Drain one topic with a worker that is watched and with one that is not, in turn.

    Example: python -m bench.observed --records 500000 --rounds 2
    """
    console = Console()
    try:
        cost = measure(records, rounds, console)
    except (IcestreamError, RunFailed) as error:
        console.print(f"bench: {error}", style="red", markup=False)
        sys.exit(1)
    console.print(
        f"watched {cost.watched:,.0f} records/s, unobserved {cost.unobserved:,.0f}: "
        f"{cost.drain_ratio:.3f} of the speed, {cost.cpu_ratio:.3f} of the CPU; "
        f"{cost.scrapes} scrapes, {cost.scrape_seconds * 1000:.1f} ms and {cost.scrape_bytes:,} bytes each"
    )
    if save:
        RESULTS.write_text(json.dumps(as_json(cost), indent=2) + "\n")
        console.print(f"written: results/{RESULTS.name}")
    if cost.drain_ratio < LEAST:
        console.print(f"that is below {LEAST}", style="red")


if __name__ == "__main__":
    main()
