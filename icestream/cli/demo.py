"""`icestream demo`: MinIO logs through Kafka into Iceberg on this machine, and the proof that nothing is
lost."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from icestream.cli.demo_stack import Stack
    from icestream.client import ConnectorView
    from icestream.embedded.minio_tables import LogTable

_SHARES = {"api": 6, "error": 2, "audit": 2}
_QUERIES = (
    # First, because Spark lists the catalogs that it has used.
    "SHOW TABLES FROM kafkawarehouse.streaming",
    "SHOW CATALOGS",
    "SELECT date_format(time, 'HH:mm:ss') AS time, name, bucket,\n"
    "       left(object, 28) AS object\n"
    "FROM kafkawarehouse.streaming.apilogs LIMIT 5",
    "SELECT bucket, name, date_format(time, 'HH:mm:ss') AS time,\n"
    "       callInfo.httpStatusCode AS status, callInfo.sourceHost AS client_ip\n"
    "FROM kafkawarehouse.streaming.apilogs\n"
    "WHERE bucket IS NOT NULL ORDER BY time DESC LIMIT 5",
)


@click.command(
    epilog="""\b
Examples:
  icestream demo
  icestream demo --records 1000000 --bad 20
  icestream demo --keep"""
)
@click.option(
    "--records", type=click.IntRange(min=10), default=200_000, show_default=True, help="How many in all."
)
@click.option(
    "--rate", type=click.FloatRange(min=1), help="Records per second; as fast as it goes when absent."
)
@click.option(
    "--bad", type=click.IntRange(min=0), default=9, show_default=True, help="How many of them are broken."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed makes the same records.")
@click.option(
    "--keep", is_flag=True, help="Leave everything running until Ctrl-C, with new records every second."
)
def demo(records: int, rate: float | None, bad: int, seed: int, keep: bool) -> None:
    """Run Kafka, a worker and three Iceberg connectors here; load MinIO logs; prove that each arrived once.

    Exits with 0 only if nothing is missing and nothing is there twice.
    """
    from rich.console import Console

    from icestream.cli.demo_stack import ended_by_signals, running_stack
    from icestream.cli.demo_trickle import trickle
    from icestream.embedded.jars import fetch_files

    console = Console()
    loads = _loads(records, bad)
    with ended_by_signals(), ExitStack() as undo:
        # Before the first status line: a download shows its own progress.
        fetch_files(["kafka", "spark-iceberg", "spark-sqlite"])
        with console.status("starting Kafka and a worker"):
            stack = undo.enter_context(running_stack())
        console.print(f"Kafka on {stack.bootstrap}, REST on {stack.url}, tables in {stack.folder}")
        console.print(f"look at it: {stack.url}/console/")
        held = _load_and_watch(console, stack, loads, rate, seed)
        if held:
            _show_queries(console, stack)
            held = _verify(stack)
        if keep:
            with trickle(stack.bootstrap, seed + 1):
                _wait_for_ctrl_c(console, stack)
        elif held:
            _show_what_to_do_next(console, stack)
    raise SystemExit(0 if held else 1)


def _loads(records: int, bad: int) -> list[tuple[LogTable, int, int]]:
    """How many records, and how many broken ones, go to each topic."""
    from icestream.embedded.minio_tables import LOG_TABLES

    parts = sum(_SHARES.values())
    counts = {log.kind: records * _SHARES[log.kind] // parts for log in LOG_TABLES}
    counts["api"] += records - sum(counts.values())
    broken = dict.fromkeys(counts, bad // 3)
    broken["api"] += bad - sum(broken.values())
    if any(broken[kind] > counts[kind] for kind in counts):
        raise click.BadParameter(
            f"{bad} of {records} records cannot be broken; ask for fewer", param_hint="--bad"
        )
    return [(log, counts[log.kind], broken[log.kind]) for log in LOG_TABLES]


def _load_and_watch(
    console: Console,
    stack: Stack,
    loads: list[tuple[LogTable, int, int]],
    rate: float | None,
    seed: int,
) -> bool:
    """Load in one thread, show how the tables follow in this one. False: a connector failed."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from icestream.cli.connectors import progress_lines
    from icestream.client import ConnectClient

    total = sum(count for _, count, _ in loads)
    bar = _bar()
    sent, landed = (
        bar.add_task("MinIO logs → Kafka", total=total),
        bar.add_task("Kafka → Iceberg", total=total),
    )
    started = time.monotonic()
    loader = _Loader(lambda: _load(stack, loads, rate, seed, lambda done: bar.update(sent, completed=done)))
    with (
        ConnectClient(stack.url) as client,
        Live(console=console, refresh_per_second=4, transient=False) as live,
    ):
        while True:
            views = client.overview()
            done = sum(_settled(view) for view in views)
            bar.update(landed, completed=done)
            table = Text.from_ansi("\n".join(progress_lines(views, time.time())), no_wrap=True)
            live.update(Group(bar, table))
            loader.raise_if_failed()
            if done >= total or any(view.state == "FAILED" for view in views):
                break
            time.sleep(0.2)
    seconds = time.monotonic() - started
    if not console.is_terminal:
        # Into a file, the live display writes its last picture without an end of line.
        console.print()
    console.print(
        f"{done:,} / {total:,} records in {seconds:.1f} s, loading included: {done / seconds:,.0f} records/s"
    )
    failed = [view for view in views if view.state == "FAILED"]
    for view in failed:
        console.print(f"{view.name} failed: {_reason(view)}", markup=False, highlight=False, soft_wrap=True)
    if failed:
        console.print(f"the log of the worker is {stack.kept_log()}", highlight=False, soft_wrap=True)
    if not failed:
        loader.join()
    return not failed


class _Loader:
    """A thread whose failure is not lost."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._failure: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # raised again where somebody sees it
            self._failure = error

    def raise_if_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    def join(self) -> None:
        self._thread.join()
        self.raise_if_failed()


def _load(
    stack: Stack,
    loads: list[tuple[LogTable, int, int]],
    rate: float | None,
    seed: int,
    on_progress: Callable[[int], None],
) -> None:
    from icestream.embedded.loadgen import produce

    before = 0
    for log, count, bad in loads:

        def sent(done: int, before: int = before) -> None:
            on_progress(before + done)

        produce(stack.bootstrap, log.topic, log.kind, count, rate=rate, bad=bad, seed=seed, on_progress=sent)
        before += count


def _settled(view: ConnectorView) -> int:
    return view.progress.rows + view.progress.rejected if view.progress else 0


def _reason(view: ConnectorView) -> str:
    """The message of the error: the last line of a trace that is not indented, without its class."""
    traces = [view.trace, *(task.trace for task in view.tasks)]
    lines = [line for trace in traces for line in (trace or "").splitlines() if line[:1].strip()]
    return re.sub(r"^[\w.]+: ", "", lines[-1]) if lines else "no reason is known"


def _bar() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn())


def _show_queries(console: Console, stack: Stack) -> None:
    from icestream.cli.sql import result_table, results
    from icestream.embedded.minio_tables import LOG_TABLES

    with console.status("opening Spark SQL"):
        answers = list(results([stack.config(LOG_TABLES[0])], ";".join(_QUERIES), {}))
    for answer in answers:
        console.print(f"\n[bold]sql>[/bold] {answer.statement}", highlight=False, soft_wrap=True)
        table = result_table(answer)
        for column in table.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
        console.print(table)


def _verify(stack: Stack) -> bool:
    from icestream.cli.verify import holds
    from icestream.embedded.minio_tables import LOG_TABLES

    click.echo()
    # All three are looked at, also when the first does not hold.
    worker = {"bootstrap.servers": stack.bootstrap}
    verdicts = [holds(log.connector, stack.config(log), worker, deep=True) for log in LOG_TABLES]
    return all(verdicts)


def _command() -> Path:
    """How to call `icestream` from here."""
    command = Path(sys.executable).with_name("icestream")
    return command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command


def _show_what_to_do_next(console: Console, stack: Stack) -> None:
    command = _command()
    console.print("\nContinue with:", highlight=False)
    for line, comment in (
        (f"{command} demo --keep", f"the same, until Ctrl-C; the console is at {stack.url}/console/"),
        (f"{command} kafka start", "a broker for topics of your own"),
        (f"{command} standalone --help", "a worker for the connector configs that you have"),
    ):
        console.print(f"  {line}\n      {comment}", markup=False, highlight=False, soft_wrap=True)


def _wait_for_ctrl_c(console: Console, stack: Stack) -> None:
    command = _command()
    console.print(
        f"\nRunning until Ctrl-C, with 100 new records a second. In a browser: {stack.url}/console/. "
        "In another terminal:",
        soft_wrap=True,
    )
    for line in (
        f"curl -s {stack.url}/connectors",
        f"curl -s {stack.url}/connectors/iceberg-sink-apilogs/status",
        f"curl -X POST {stack.url}/connectors/iceberg-sink-apilogs/restart",
        f"{command} connectors --url {stack.url} --watch",
        f"{command} load --topic apilogs --records 10000 --bootstrap-servers {stack.bootstrap}",
        f"{command} verify iceberg-sink-apilogs --url {stack.url} --bootstrap-servers {stack.bootstrap}",
    ):
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        console.print("stopping")
