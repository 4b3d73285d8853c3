"""`icestream connector status`: the states of connectors and their tasks, and why what failed did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from icestream.cli.connectors import notes, statuses_of, worst_state
from icestream.cli.lines import one_line
from icestream.cli.live import watch
from icestream.cli.tables import STATE_STYLES, Column, table_lines
from icestream.cli.worker_options import (
    names_argument,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient, ConnectorView

_COLUMNS = (Column("connector"), Column("part"), Column("state", styles=STATE_STYLES), Column("worker"))


@click.command(
    epilog="\b\nExample:\n  icestream connector status sink\n  icestream connector status sink --trace\n"
    "  icestream connector status --watch"
)
@names_argument(required=False)
@click.option("--watch", "is_watched", is_flag=True, help="Show it again every second, until Ctrl-C.")
@click.option("--trace", is_flag=True, help="The whole traces of what failed.")
@output_option
@talks_to_a_worker
def status(
    client: ConnectClient, patterns: Sequence[str], is_watched: bool, trace: bool, output: str
) -> None:
    """Show the states of connectors and tasks, and why one failed.

    Exits with 1 if something has failed.
    """
    if is_watched and output == "json":
        watch(lambda _: [json.dumps(_document(statuses_of(client, patterns), patterns))])
    elif is_watched:
        watch(lambda width: _lines(statuses_of(client, patterns), trace, width))
    else:
        _show_once(statuses_of(client, patterns), patterns, trace, output)


def _show_once(statuses: Sequence[dict[str, Any]], patterns: Sequence[str], trace: bool, output: str) -> None:
    if output == "json":
        print_json(_document(statuses, patterns))
    else:
        print_lines(_lines(statuses, trace, None))
    if any(worst_state(view) == "FAILED" for view in _views(statuses)):
        click.get_current_context().exit(1)


def _document(statuses: Sequence[dict[str, Any]], patterns: Sequence[str]) -> object:
    """The status itself, if exactly one connector was named; otherwise a list."""
    return (
        statuses[0] if [it["name"] for it in statuses] == list(patterns) and len(patterns) == 1 else statuses
    )


def _views(statuses: Sequence[dict[str, Any]]) -> list[ConnectorView]:
    from icestream.client import view_of

    return [view_of(status) for status in statuses]


def _lines(statuses: Sequence[dict[str, Any]], trace: bool, width: int | None) -> list[str]:
    views = _views(statuses)
    if not views:
        return ["no connectors"]
    rows = [row for view in views for row in _rows(view)]
    below = [line for view in views for line in (_traces(view) if trace else notes(view))]
    return [*table_lines(_COLUMNS, rows, width), *(line[:width] for line in below)]


def _rows(view: ConnectorView) -> list[tuple[str, str, str, str]]:
    first = (view.name, "connector", view.state, view.worker_id)
    return [first, *((view.name, f"task {task.id}", task.state, task.worker_id) for task in view.tasks)]


def _traces(view: ConnectorView) -> list[str]:
    parts = [(view.name, view.trace), *((f"{view.name} task {task.id}", task.trace) for task in view.tasks)]
    return [line for part, trace in parts if trace for line in (f"{part}:", *_plain_lines(trace))]


def _plain_lines(text: str) -> list[str]:
    return [f"  {one_line(line.expandtabs(4))}" for line in text.strip().splitlines()]
