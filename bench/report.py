"""The figures of a benchmark, from its runs: ratios of the same round, their medians, the results file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.one_record import INTERVAL_MS, Latency
from bench.rounds import Drained
from bench.sides import COMMIT_INTERVAL_MS, HEAP, PEER_CONSUMER, PEER_JVM, TASKS

GOALS: Final = {"drain": 5.0, "cpu": 0.2, "memory": 1.5}
ONE_RECORD_GOAL_MS: Final = 400.0
MEASURES: Final[Mapping[str, Callable[[Drained], float]]] = {
    "drain": lambda run: run.rate,
    "cpu": lambda run: run.cpu_per_million,
    "memory": lambda run: float(run.peak_memory_bytes),
}
QUIET_SHARE: Final = 0.1
"""More than this part of the machine in other hands, and a run is called disturbed."""


@dataclass(frozen=True)
class Outcome:
    """Everything that was measured; what was left out is empty or None."""

    runs: Sequence[Drained]
    latency: Latency | None
    bytes_per_record: float
    evolve_schema: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    measured_on: str

    def of(self, side: str) -> list[Drained]:
        return [run for run in self.runs if run.side == side]

    @property
    def disturbed(self) -> list[Drained]:
        return [run for run in self.runs if run.foreign_share > QUIET_SHARE]


def ratios(runs: Sequence[Drained], measure: Callable[[Drained], float]) -> list[float]:
    """Ours ÷ theirs for every round that has both."""
    theirs = {run.round: run for run in runs if run.side == "theirs"}
    return [
        measure(run) / measure(theirs[run.round])
        for run in runs
        if run.side == "ours" and run.round in theirs
    ]


def median_ratios(runs: Sequence[Drained]) -> dict[str, float]:
    """The medians by name; empty unless some round has both sides."""
    found = {name: ratios(runs, measure) for name, measure in MEASURES.items()}
    return {name: round(statistics.median(values), 3) for name, values in found.items() if values}


def as_json(outcome: Outcome) -> dict[str, Any]:
    latency = outcome.latency
    return {
        "measured_on": outcome.measured_on,
        "ratio": median_ratios(outcome.runs),
        "one_record_ms": latency and round(latency.median, 1),
        "goals": {**GOALS, "one_record_ms": ONE_RECORD_GOAL_MS},
        "versions": dict(outcome.versions),
        "machine": dict(outcome.machine),
        "settings": {
            "bytes_per_record": round(outcome.bytes_per_record, 1),
            "tasks_max": TASKS,
            "heap": HEAP,
            "commit_interval_ms": COMMIT_INTERVAL_MS,
            "evolve_schema": outcome.evolve_schema,
            "one_record_commit_interval_ms": INTERVAL_MS,
            "their_consumer": PEER_CONSUMER,
            "their_jvm": PEER_JVM,
        },
        "disturbed_runs": len(outcome.disturbed),
        "runs": [_run_as_json(run) for run in outcome.runs],
        "one_record_ms_each": list(latency.milliseconds) if latency else [],
    }


def _run_as_json(run: Drained) -> dict[str, Any]:
    facts = {
        key: round(value, 3) if isinstance(value, float) else value
        for key, value in asdict(run).items()
        if key not in ("content", "threads")
    }
    return {
        **facts,
        "records_per_second": round(run.rate),
        "cpu_seconds_per_million": round(run.cpu_per_million, 1),
        **asdict(run.content),
    }
