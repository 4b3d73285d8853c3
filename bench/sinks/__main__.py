"""`python -m bench.sinks`, which `make bench-sinks` calls: every case, the plain loop and us in turn."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click
from rich.console import Console

from bench import page
from bench.sinks import databases, objects, report
from bench.sinks.databases import DrainOptions
from bench.sinks.objects import RateOptions
from bench.sinks.report import CASES, Outcome
from bench.worker import RunFailed
from bench.working_folder import working_folder
from icestream.api.errors import IcestreamError
from icestream.embedded import kafka

_OBJECTS = ("folder", "s3")
_SIDES = ("peer", "ours")


@click.command()
@click.option("--case", "cases", multiple=True, type=click.Choice(list(CASES)), help="Only this one.")
@click.option("--side", default="both", type=click.Choice([*_SIDES, "both"]), show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Each side so often; who begins changes.")
@click.option("--rate", default=35_000, show_default=True, help="Records a second to the S3 sink.")
@click.option("--seconds", default=40.0, show_default=True, help="How long that rate is measured.")
@click.option("--warm-up", default=15.0, show_default=True, help="Seconds before that which do not count.")
@click.option("--flush", default=10.0, show_default=True, help="Seconds from flush to flush.")
@click.option("--records", default=600_000, show_default=True, help="Into the database.")
@click.option("--rows", default=3_000_000, show_default=True, help="Out of the database.")
@click.option("--profile", is_flag=True, help="Show CPU by thread.")
@click.option("--save/--no-save", default=True, show_default=True, help="Write results when all ran.")
def main(
    cases: Sequence[str],
    side: str,
    rounds: int,
    rate: int,
    seconds: float,
    warm_up: float,
    flush: float,
    records: int,
    rows: int,
    profile: bool,
    save: bool,
) -> None:
    """The S3 sink and the JDBC connectors beside the plain loops that do their work.

    Example: python -m bench.sinks --case upsert --records 100000 --rounds 1 --no-save
    """
    console = Console()
    signal.signal(signal.SIGTERM, _interrupted)
    rates = RateOptions(rate, seconds, warm_up, flush)
    drains = DrainOptions(records, rows, profile)
    outcome = Outcome([], [], rates, drains)
    try:
        for case in cases or CASES:
            for number in range(rounds):
                sides = _SIDES if side == "both" else (side,)
                for one in sides if number % 2 == 0 else reversed(sides):
                    _measure(case, one, outcome, console)
    except (IcestreamError, RunFailed) as error:
        console.print(f"bench: {error}", style="red", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("bench: interrupted; nothing is left running")
        sys.exit(130)
    document = report.as_json(outcome)
    console.print(report.section(document), markup=False, soft_wrap=True)
    if save and side == "both" and not cases:
        report.RESULTS.write_text(json.dumps(document, indent=2) + "\n")
        page.publish("sinks", report.section(document))
        console.print(f"written: {report.RESULTS.name} and {page.PAGE.name}")


def _interrupted(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _measure(case: str, side: str, outcome: Outcome, console: Console) -> None:
    # A broker of its own for each run: the topics of the others are not on its disk and in its cache.
    with (
        console.status(f"{CASES[case]}: {report.SIDES[side]}"),
        working_folder("sinks", 8_000) as folder,
        kafka.running_broker(folder / "kafka") as broker,
    ):
        if case in _OBJECTS:
            rate_run = objects.run(case, side, folder, broker, outcome.rate_options)
            outcome.rates.append(rate_run)
            console.print(rate_run, markup=False)
        else:
            drain_run = databases.run(case, side, folder, broker, outcome.drain_options)
            outcome.drains.append(drain_run)
            console.print(drain_run, f"{drain_run.rate:,.0f} rows/s", markup=False)


if __name__ == "__main__":
    main()
