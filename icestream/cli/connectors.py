"""`icestream connectors`: the table of a worker's connectors, ours or any Kafka Connect's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from icestream.cli.lines import one_line
from icestream.cli.live import clock, reason, watch
from icestream.cli.tables import NOTHING, STATE_STYLES, Column, table_lines
from icestream.cli.worker_options import (
    EXIT_CODES,
    chosen,
    names_argument,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient, ConnectorView

_NAME, _STATE = Column("connector"), Column("state", styles=STATE_STYLES)
_PROGRESS = (
    Column("lag", is_number=True),
    Column("last commit", is_number=True),
    Column("rows", is_number=True),
    Column("rejected", is_number=True),
)


@click.command(
    epilog="\b\nExample:\n  icestream connectors\n"
    f"  icestream connectors 'iceberg-*' --watch\n\n{EXIT_CODES}",
    short_help="List connectors, live with --watch.",
)
@names_argument(required=False)
@click.option("--watch", "is_watched", is_flag=True, help="Show it again every second, until Ctrl-C.")
@output_option
@talks_to_a_worker
def connectors(client: ConnectClient, patterns: Sequence[str], is_watched: bool, output: str) -> None:
    """List connectors with state, running tasks, lag, last commit, rows and rejected records.

    NAME may be a pattern, such as 'iceberg-*'; without any, all are shown.
    """
    if output == "json":
        if is_watched:
            watch(lambda _: [json.dumps(statuses_of(client, patterns))])
        else:
            print_json(statuses_of(client, patterns))
    elif is_watched:
        watch(lambda width: _picture(client, patterns, width))
    else:
        print_lines(_picture(client, patterns, None))


def statuses_of(client: ConnectClient, patterns: Sequence[str]) -> list[dict[str, Any]]:
    """The statuses of the connectors that are meant; of all, if none is named."""
    known = {str(status["name"]): status for status in client.statuses()}
    return [known[name] for name in (chosen(list(known), patterns) if patterns else known)]


def connector_lines(views: Sequence[ConnectorView], now: float, width: int | None = None) -> list[str]:
    """The table, with times relative to `now` (epoch seconds)."""
    columns = (_NAME, Column("type"), _STATE, Column("tasks", is_number=True), *_PROGRESS)
    return table_lines(columns, [_row(view, now) for view in views], width)


def progress_lines(views: Sequence[ConnectorView], now: float) -> list[str]:
    """The same without type and tasks, for the 80 places of the demo."""
    rows = [(view.name, worst_state(view), *_progress_cells(view, now)) for view in views]
    return table_lines((_NAME, _STATE, *_PROGRESS), rows)


def worst_state(view: ConnectorView) -> str:
    """FAILED if any task is; the connector's own state otherwise."""
    return "FAILED" if any(task.state == "FAILED" for task in view.tasks) else view.state


def ago(seconds: float) -> str:
    """A time that has passed, as people say it."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def notes(view: ConnectorView) -> list[str]:
    """What is wrong with a connector, and the warnings about it."""
    why = reason(view)
    warnings = view.progress.warnings if view.progress else ()
    runs = view.progress.maintenance if view.progress else ()
    failed = [f"maintenance of {run['target']}: {run['error']}" for run in runs if run.get("error")]
    others = [one for one in (*warnings, *failed) if one != why]
    found = [*([why] if why else []), *(f"warning: {warning}" for warning in others)]
    return [f"{one_line(view.name)}: {one_line(text)}" for text in found]


def _picture(client: ConnectClient, patterns: Sequence[str], width: int | None) -> list[str]:
    from icestream.client import view_of

    views = [view_of(status) for status in statuses_of(client, patterns)]
    if not views:
        return ["no connectors; create one with 'icestream connector create -f FILE'"]
    below = [note for view in views for note in notes(view)]
    return [*connector_lines(views, clock().now(), width), *(note[:width] for note in below)]


def _row(view: ConnectorView, now: float) -> tuple[str, ...]:
    running = sum(task.state == "RUNNING" for task in view.tasks)
    tasks = f"{running}/{len(view.tasks)}"
    return view.name, view.type or NOTHING, worst_state(view), tasks, *_progress_cells(view, now)


def _progress_cells(view: ConnectorView, now: float) -> tuple[str, str, str, str]:
    progress = view.progress
    if progress is None:
        return (NOTHING,) * 4
    commit = NOTHING if progress.last_commit_ms is None else ago(now - progress.last_commit_ms / 1000)
    lag = NOTHING if progress.lag is None else f"{progress.lag:,}"
    return lag, commit, f"{progress.rows:,}", f"{progress.rejected:,}"
