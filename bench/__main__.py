"""`python -m bench`, which `make bench` calls."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine, picture, report, screen
from bench.one_record import Latency, one_record
from bench.rounds import Drained, Load, drain, in_turn
from bench.sides import CONTROL_TOPIC, Side, ours, theirs
from bench.worker import RunFailed
from icestream.api.errors import IcestreamError
from icestream.embedded import kafka
from icestream.embedded.home import home, require_space
from icestream.embedded.java import java

TOPIC: Final = "apilogs"
RESULTS: Final = Path(__file__).parent / "results"
_MB_PER_MILLION: Final = 6_000


@dataclass(frozen=True)
class Options:
    records: int
    rounds: int
    one_records: int
    evolve_schema: bool
    profile: bool
    keep: bool


@click.command()
@click.option("--records", default=2_000_000, show_default=True, type=click.IntRange(min=1))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--side",
    default="both",
    show_default=True,
    type=click.Choice(["ours", "theirs", "both"]),
    help="Who runs.",
)
@click.option(
    "--one-records", default=20, show_default=True, help="Single records for the latency; 0 for none."
)
@click.option("--evolve-schema/--no-evolve-schema", default=True, show_default=True, help="On both sides.")
@click.option("--profile", is_flag=True, help="Show where the CPU went, thread by thread.")
@click.option("--save/--no-save", default=True, show_default=True, help="Write bench/results when both ran.")
@click.option("--keep", is_flag=True, help="Leave tables and logs where they are, and say where.")
def main(
    records: int,
    rounds: int,
    side: str,
    one_records: int,
    evolve_schema: bool,
    profile: bool,
    save: bool,
    keep: bool,
) -> None:
    """Drain one topic with the real Kafka Connect and with Icestream, in turn.

    Example: python -m bench --records 200000 --rounds 1 --side theirs
    """
    console = Console()
    options = Options(records, rounds, one_records, evolve_schema, profile, keep)
    # Ends like Ctrl-C: every `with` block stops what it has started.
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sides = _sides(side, console)
        outcome = _measure(sides, options, console)
    except (IcestreamError, RunFailed) as error:
        console.print(f"bench: {error}", style="red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("bench: interrupted; nothing is left running")
        sys.exit(130)
    screen.show(outcome, console)
    if save and side == "both":
        _save(outcome)
        console.print(f"written: {RESULTS.name}/latest.json and latest.svg")


def _interrupted(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _sides(chosen: str, console: Console) -> Sequence[Side]:
    found = []
    if chosen != "theirs":
        found.append(ours())
    if chosen != "ours":
        found.append(theirs())
    return found


def _measure(sides: Sequence[Side], options: Options, console: Console) -> report.Outcome:
    program = java()
    with _folder(options, console) as folder, kafka.running_broker(folder / "kafka") as broker:
        size = _fill(broker.bootstrap, options.records, console)
        load = Load(broker.bootstrap, TOPIC, options.records, broker.pid, options.evolve_schema)
        runs = [
            _run_once(side, number, load, folder, options, console)
            for number, side in in_turn(sides, options.rounds)
        ]
        latency = _latency(sides, broker.bootstrap, folder, options, console)
    return report.Outcome(
        runs=runs,
        latency=latency,
        bytes_per_record=size,
        evolve_schema=options.evolve_schema,
        machine=machine.machine(),
        versions=machine.versions(program),
        measured_on=f"{datetime.now(UTC):%Y-%m-%d}",
    )


@contextmanager
def _folder(options: Options, console: Console) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=home()))
    require_space(folder, 1_000 + _MB_PER_MILLION * options.records // 1_000_000)
    try:
        yield folder
    except RunFailed:
        console.print(f"logs and tables are left in {folder}")
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if options.keep:
        console.print(f"logs and tables are left in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(bootstrap: str, records: int, console: Console) -> float:
    """Load the topic; returns the mean size of a record."""
    from icestream.embedded import loadgen
    from icestream.embedded.minio_logs import generate
    from icestream.embedded.topics import ensure_topic

    ensure_topic(bootstrap, TOPIC, 3)
    ensure_topic(bootstrap, CONTROL_TOPIC, 1)
    with _progress(console) as progress:
        bar = progress.add_task("loading the topic", total=records)
        loadgen.produce(
            bootstrap, TOPIC, "api", records, on_progress=lambda sent: progress.update(bar, completed=sent)
        )
    sample = [len(record) for record in generate("api", min(records, 10_000))]
    return sum(sample) / len(sample)


def _run_once(
    side: Side, number: int, load: Load, folder: Path, options: Options, console: Console
) -> Drained:
    with _progress(console) as progress:
        bar = progress.add_task(f"round {number}: {side.title}", total=load.records)
        run = drain(
            side,
            number,
            load,
            folder / f"{number}-{side.name}",
            lambda rows: progress.update(bar, completed=rows),
            profile=options.profile,
            keep=options.keep,
        )
        progress.update(bar, completed=load.records)
    if run.threads:
        screen.show_profile(run, console)
    return run


def _latency(
    sides: Sequence[Side], bootstrap: str, folder: Path, options: Options, console: Console
) -> Latency | None:
    measured = [side for side in sides if side.name == "ours"]
    if not measured or not options.one_records:
        return None
    with console.status("one record at a time"):
        return one_record(
            measured[0],
            bootstrap,
            folder / "one-record",
            count=options.one_records,
            evolve_schema=options.evolve_schema,
        )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _save(outcome: report.Outcome) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps(report.as_json(outcome), indent=2) + "\n")
    picture.draw(outcome, RESULTS / "latest.svg")


if __name__ == "__main__":
    main()
