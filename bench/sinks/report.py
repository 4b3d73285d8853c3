"""The runs as tables for the page and as the file of results. Of several rounds the medians count."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import machine, page
from bench.sinks.databases import DrainOptions, DrainRun
from bench.sinks.objects import RateOptions, RateRun
from icestream.embedded.java import java

RESULTS: Final = Path(__file__).parent.parent / "results" / "sinks.json"
CASES: Final[Mapping[str, str]] = {
    "folder": "JSON Lines, gzip, to a local folder",
    "s3": "JSON Lines, gzip, to S3 (moto)",
    "insert": "JDBC sink, insert of 10 columns",
    "upsert": "JDBC sink, upsert of 10 columns",
    "source": "JDBC source, 10 columns",
}
SIDES: Final[Mapping[str, str]] = {"peer": "plain loop", "ours": "Icestream"}


@dataclass(frozen=True)
class Outcome:
    rates: list[RateRun]
    drains: list[DrainRun]
    rate_options: RateOptions
    drain_options: DrainOptions


def _median(runs: Sequence[Any], figure: str) -> float:
    return float(statistics.median(getattr(run, figure) for run in runs))


def _rate_row(runs: Sequence[RateRun]) -> list[str]:
    one = runs[0]
    return [
        CASES[one.case],
        SIDES[one.side],
        f"{one.rate:,}",
        f"{_median(runs, 'p50_ms'):,.0f}",
        f"{_median(runs, 'p99_ms'):,.0f}",
        f"{_median(runs, 'behind_seconds'):.1f}" if all(run.keeps_up for run in runs) else "not all came",
        f"{_median(runs, 'cpu_per_million'):.1f}",
        f"{_median(runs, 'peak_memory_mb'):,.0f}",
        f"{_median(runs, 'objects'):,.0f}",
    ]


def _drain_row(runs: Sequence[DrainRun]) -> list[str]:
    one = runs[0]
    return [
        CASES[one.case],
        SIDES[one.side],
        f"{one.rows:,}",
        f"{_median(runs, 'rate'):,.0f}",
        f"{_median(runs, 'cpu_per_million'):.1f}",
        f"{_median(runs, 'peak_memory_mb'):,.0f}",
    ]


_RATE_HEADINGS: Final = (
    *("", "side", "records/s", "P50, ms", "P99, ms", "behind at the end, s"),
    *("CPU-seconds per million", "peak memory, MB", "objects"),
)
_DRAIN_HEADINGS: Final = (
    *("", "side", "rows", "rows/s"),
    *("CPU-seconds per million", "peak memory, MB"),
)


def section(document: Mapping[str, Any]) -> str:
    """What the page says of a results file."""
    rates = [RateRun(**run) for run in document["rates"]]
    drains = [DrainRun(**run) for run in document["drains"]]
    every: list[Any] = [*rates, *drains]
    others = max((run.foreign_share for run in every), default=0.0)
    rounds = max((len(group) for group in _groups(every)), default=0)
    times = "one round" if rounds == 1 else f"medians of {rounds} rounds"
    where, given = document["machine"], document["settings"]
    parts = [
        f"Measured on {document['measured_on']}, {where['cores']} cores, {where['memory_gb']} GB; "
        f"{times}; others used up to {others:.0%} of the machine."
    ]
    if rates:
        parts.append(
            page.table(_RATE_HEADINGS, (_rate_row(group) for group in _groups(rates)))
            + f"\n\nA flush every {given['flush_seconds']:.0f} s; {given['seconds']:.0f} s measured, after "
            f"{given['warm_up']:.0f} s that do not count."
        )
    if drains:
        parts.append(page.table(_DRAIN_HEADINGS, (_drain_row(group) for group in _groups(drains))))
    return "\n\n".join(parts)


def _groups(runs: Sequence[Any]) -> list[list[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for run in runs:
        found.setdefault((run.case, run.side), []).append(run)
    return list(found.values())


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "measured_on": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine.machine(),
        "versions": machine.versions(java()),
        "settings": {**asdict(outcome.rate_options), **asdict(outcome.drain_options)},
        "rates": [asdict(run) for run in outcome.rates],
        "drains": [asdict(run) for run in outcome.drains],
    }
