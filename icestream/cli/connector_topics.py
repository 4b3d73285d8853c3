"""`icestream connector topics …`: the topics that a connector has really used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from icestream.cli.changes import change_all
from icestream.cli.tables import Column, table_lines
from icestream.cli.worker_options import (
    matching,
    names_argument,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient


@click.group(epilog="\b\nExample:\n  icestream connector topics show sink")
def topics() -> None:
    """Show and reset the topics that connectors have really used."""


@topics.command(epilog="\b\nExample:\n  icestream connector topics show 'iceberg-*'")
@names_argument()
@output_option
@talks_to_a_worker
def show(client: ConnectClient, patterns: Sequence[str], output: str) -> None:
    """Show the topics of connectors."""
    found = {name: client.topics(name) for name in matching(client, patterns)}
    if output == "json":
        print_json({name: {"topics": used} for name, used in found.items()})
        return
    rows = [(name, topic) for name, used in found.items() for topic in sorted(used)]
    print_lines(table_lines([Column("connector"), Column("topic")], rows) if rows else ["no topics yet"])


@topics.command(epilog="\b\nExample:\n  icestream connector topics reset sink")
@names_argument()
@output_option
@talks_to_a_worker
def reset(client: ConnectClient, patterns: Sequence[str], output: str) -> None:
    """Forget which topics connectors have used; those in use come back."""

    def reset_one(name: str) -> str:
        client.reset_topics(name)
        return "topics reset"

    change_all(output, matching(client, patterns), reset_one)
