"""`icestream connectors`: the live table of a worker's connectors, ours or any Kafka Connect's."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from icestream.client import ConnectClient, ConnectorView

_STATE_COLOURS = {"RUNNING": "green", "FAILED": "bold red", "PAUSED": "yellow", "STOPPED": "yellow"}
_NOTHING = "-"


@click.command(epilog="Example: icestream connectors --watch", short_help="Show connectors, live.")
@click.option(
    "--url",
    envvar="ICESTREAM_URL",
    default="http://localhost:8083",
    show_default=True,
    help="The REST address of a worker; also $ICESTREAM_URL.",
)
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def connectors(url: str, watch: bool, output: str) -> None:
    """Show every connector with its state, lag, last commit, rows and rejected records."""
    from icestream.client import ConnectClient

    with ConnectClient(url) as client:
        if output == "json":
            click.echo(json.dumps([asdict(view) for view in client.overview()], indent=2))
        elif watch:
            _watch(client)
        else:
            _print(client.overview())


def connectors_table(views: Sequence[ConnectorView], now: float) -> Table:
    """The table, with times relative to `now` (epoch seconds)."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("connector", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("lag", "last commit", "rows", "rejected"):
        table.add_column(name, justify="right", no_wrap=True)
    for view in views:
        state = worst_state(view)
        table.add_row(
            view.name, Text(state, style=_STATE_COLOURS.get(state, "")), *_progress_cells(view, now)
        )
    return table


def worst_state(view: ConnectorView) -> str:
    """FAILED if any task is; the connector's own state otherwise."""
    return "FAILED" if any(task.state == "FAILED" for task in view.tasks) else view.state


def ago(seconds: float) -> str:
    """A time that has passed, as people say it."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def _progress_cells(view: ConnectorView, now: float) -> tuple[str, str, str, str]:
    progress = view.progress
    if progress is None:
        return (_NOTHING,) * 4
    commit = _NOTHING if progress.last_commit_ms is None else ago(now - progress.last_commit_ms / 1000)
    lag = _NOTHING if progress.lag is None else f"{progress.lag:,}"
    return lag, commit, f"{progress.rows:,}", f"{progress.rejected:,}"


def _print(views: Sequence[ConnectorView]) -> None:
    from rich.console import Console

    if not views:
        click.echo("no connectors; create one with POST /connectors")
        return
    console = Console()
    console.print(connectors_table(views, time.time()))
    for view in views:
        for text in _notes(view):
            console.print(f"{view.name}: {text}", markup=False, highlight=False)


def _notes(view: ConnectorView) -> list[str]:
    traces = [view.trace, *(task.trace for task in view.tasks)]
    reason = next((trace.strip().splitlines()[-1] for trace in traces if trace and trace.strip()), None)
    warnings = view.progress.warnings if view.progress else ()
    return [*([reason] if reason else []), *(f"warning: {warning}" for warning in warnings)]


def _watch(client: ConnectClient) -> None:
    from rich.live import Live

    with (
        suppress(KeyboardInterrupt),
        Live(connectors_table(client.overview(), time.time()), auto_refresh=False) as live,
    ):
        while True:
            time.sleep(1.0)
            live.update(connectors_table(client.overview(), time.time()), refresh=True)
