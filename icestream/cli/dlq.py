"""`icestream dlq`: a connector's dead letters as a table, and their way back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from icestream.cli.kafka_access import known, reaches_kafka
from icestream.cli.letter_rows import COLUMNS, HEAD, cells_of, document_of, hint_about, row_of
from icestream.cli.tables import table_lines
from icestream.cli.where import Test, parsed
from icestream.cli.worker_options import (
    connector_names,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient
    from icestream.jobs.letters import Letter
    from icestream.jobs.replay import Queue

_WHERE_HELP: Final = """\b
--where compares columns (topic, partition, offset, stage, class, exception, reason, time, key, value,
replayed) with =, !=, <, <=, >, >=, like (% any text, _ any sign), in (...), is [not] null, joined by and,
or, not and parentheses. Texts stand in single quotes, times are UTC unless they say otherwise.
A comparison with something that a letter lacks is false.
"""

T = TypeVar("T")


@click.group(epilog="\b\nExample:\n  icestream dlq show sink\n  icestream dlq replay sink --dry-run")
def dlq() -> None:
    """Show the dead letters of a connector, and send them again after a fix."""


def _where_option(command: Callable[..., T]) -> Callable[..., T]:
    return click.option("--where", metavar="CONDITION", help="Only letters for which it holds; see below.")(
        command
    )


_connector = click.argument("connector", metavar="CONNECTOR", shell_complete=connector_names)


@dlq.command(
    epilog="\b\nExamples:\n  icestream dlq show sink\n"
    "  icestream dlq show sink --where \"stage = 'TRANSFORMATION' and reason like '%amount%'\"\n"
    f"  icestream dlq show sink --where \"time >= '2026-11-15 10:00'\" -o json\n\n{_WHERE_HELP}"
)
@_connector
@_where_option
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Only so many, the newest."
)
@output_option
@reaches_kafka
@talks_to_a_worker
def show(
    client: ConnectClient,
    connector: str,
    where: str | None,
    limit: int,
    output: str,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
) -> None:
    """Show dead letters of CONNECTOR: where each is from, what was wrong with it, how it begins.

    Works with every Kafka Connect whose queue has context headers
    (errors.deadletterqueue.context.headers.enable).
    """
    test = _test(where)
    queue = _queue(connector, known(client, connector, config, bootstrap_servers, worker))
    try:
        count = 0
        newest: deque[tuple[Letter, bool]] = deque(maxlen=limit)
        for found in queue.letters(test):
            newest.append(found)
            count += 1
    finally:
        queue.close()
    if output == "json":
        print_json([document_of(letter, replayed) for letter, replayed in newest])
    elif not newest:
        click.echo(f"no dead letters in '{queue.topic}'")
    else:
        print_lines(table_lines(HEAD, [cells_of(*found) for found in newest]))
        if count > len(newest):
            click.echo(f"the newest {len(newest):,} of {count:,}; see more with --limit")
        if hint := hint_about([letter for letter, _ in newest]):
            click.echo(hint)


@dlq.command(
    epilog="\b\nExamples:\n  icestream dlq replay sink --dry-run\n"
    "  icestream dlq replay sink --where \"reason like '%amount%'\"\n"
    f"  icestream dlq replay sink --to-topic orders-again\n\n{_WHERE_HELP}"
)
@_connector
@_where_option
@click.option("--limit", type=click.IntRange(min=1), help="Only so many, the oldest.")
@click.option("--to-topic", help="Send all of them there, instead of where each is from.")
@click.option("--dry-run", is_flag=True, help="Only say how many it would be.")
@reaches_kafka
@talks_to_a_worker
def replay(
    client: ConnectClient,
    connector: str,
    where: str | None,
    limit: int | None,
    to_topic: str | None,
    dry_run: bool,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
) -> None:
    """Send dead letters of CONNECTOR to the topics they are from, each at most once.

    They go with their own key, value, headers and timestamp, and without the headers about the error. What
    was sent is remembered with it, in one transaction: run it again after whatever happened. The letters stay
    in their queue. Every reader of the topic gets them, not only CONNECTOR.
    """
    test = _test(where)
    queue = _queue(connector, known(client, connector, config, bootstrap_servers, worker))
    try:
        selection = queue.selection(test, limit, to_topic)
        before = f", {selection.sent_already:,} were sent before" if selection.sent_already else ""
        targets = ", ".join([to_topic] if to_topic else sorted(selection.origins))
        if dry_run or not selection.letters:
            there = f" to {targets}" if targets else ""
            click.echo(f"{selection.letters:,} letters would be sent{there}{before}")
            return
        sent = sum(queue.replay(test, limit, to_topic))
        click.echo(f"{sent:,} letters sent to {targets}{before}")
    finally:
        queue.close()


def _queue(connector: str, found: tuple[Mapping[str, str], Mapping[str, str]]) -> Queue:
    from icestream import logs
    from icestream.jobs.replay import Queue

    logs.configure("ERROR")
    return Queue(connector, *found)


def _test(where: str | None) -> Callable[[Letter, bool], bool]:
    if where is None:
        return lambda letter, replayed: True
    test: Test = parsed(where, COLUMNS)
    return lambda letter, replayed: test(row_of(letter, replayed))
