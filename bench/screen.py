"""The result as tables on the terminal."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.report import GOALS, MEASURES, ONE_RECORD_GOAL_MS, Outcome, median_ratios, ratios
from bench.rounds import Drained

_MOST_THREADS: Final = 25


def show(outcome: Outcome, console: Console) -> None:
    console.print(_runs(outcome.runs))
    if median_ratios(outcome.runs):
        console.print(_ratios(outcome))
    if outcome.latency:
        each = sorted(outcome.latency.milliseconds)
        console.print(
            f"one record: {outcome.latency.median:.0f} ms in the median of {len(each)}"
            f" ({each[0]:.0f}–{each[-1]:.0f}); goal {ONE_RECORD_GOAL_MS:.0f} ms"
        )
    for run in outcome.disturbed:
        console.print(
            f"round {run.round}, {run.side}: others used {run.foreign_share:.0%} of the machine;"
            " run it again on a quiet one",
            style="yellow",
        )


def show_profile(run: Drained, console: Console) -> None:
    table = Table(title=f"{run.side}, round {run.round}: CPU-seconds by thread, from the worker's start")
    for heading in ("process", "thread", "threads", "CPU s"):
        table.add_column(heading, justify="left" if heading in ("process", "thread") else "right")
    for line in run.threads[:_MOST_THREADS]:
        table.add_row(line.process, line.thread, str(line.threads), f"{line.cpu_seconds:.1f}")
    console.print(table)


def _runs(runs: Sequence[Drained]) -> Table:
    table = Table(title="From creating the connector to the last row visible")
    table.add_column("round")
    table.add_column("side")
    for heading in ("records/s", "seconds", "CPU s/M", "peak MB", "commits"):
        table.add_column(heading, justify="right")
    table.add_column("others", justify="right", style="dim")
    for run in runs:
        table.add_row(
            str(run.round),
            run.side,
            f"{run.rate:,.0f}",
            f"{run.seconds:.1f}",
            f"{run.cpu_per_million:.1f}",
            f"{run.peak_memory_bytes / 2**20:,.0f}",
            str(run.content.commits),
            f"{run.foreign_share:.0%}",
        )
    return table


def _ratios(outcome: Outcome) -> Table:
    table = Table(title="Medians, and ours ÷ theirs in the same round")
    table.add_column("figure")
    for heading in ("theirs", "ours", "ratio", "range", "goal"):
        table.add_column(heading, justify="right")
    names = {"drain": "records/s", "cpu": "CPU s per million", "memory": "peak memory, MB"}
    scales = {"drain": 1.0, "cpu": 1.0, "memory": 1 / 2**20}
    for name, ratio in median_ratios(outcome.runs).items():
        measure, scale = MEASURES[name], scales[name]
        theirs, ours = (
            statistics.median(measure(run) * scale for run in outcome.of(side)) for side in ("theirs", "ours")
        )
        each = ratios(outcome.runs, measure)
        goal = f"≥ {GOALS[name]}" if name == "drain" else f"≤ {GOALS[name]}"
        table.add_row(
            names[name],
            f"{theirs:,.1f}",
            f"{ours:,.1f}",
            f"{ratio:.2f}",
            f"{min(each):.2f}–{max(each):.2f}",
            goal,
        )
    return table
