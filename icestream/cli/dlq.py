"""`icestream dlq`: a connector's dead letters as a table or as JSON, and their way back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from icestream.api.errors import BadFilter
from icestream.cli.kafka_access import known, reaches_kafka
from icestream.cli.tables import NOTHING, Column, table_lines
from icestream.cli.worker_options import (
    connector_names,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient
    from icestream.jobs.letters.replay import DeadLetterQueue
    from icestream.jobs.publishing.dead_letters import DeadLetter

T = TypeVar("T")

HEAD: Final = (
    Column("topic"),
    Column("partition", is_number=True),
    Column("offset", is_number=True),
    Column("stage"),
    Column("error"),
    Column("time"),
    Column("key"),
    Column("value"),
    Column("replayed"),
)
_CELL: Final = 60
"""How much of a long text a table shows."""


@click.group(epilog="\b\nExample:\n  icestream dlq show sink\n  icestream dlq replay sink --dry-run")
def dlq() -> None:
    """Show the dead letters of a connector, and send them again after a fix."""


def _time(context: click.Context, parameter: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    from icestream.jobs.letters.where import time_from

    try:
        return time_from(text)
    except BadFilter as error:
        raise click.BadParameter(str(error)) from None


def _filter_options(command: Callable[..., T]) -> Callable[..., T]:
    """The fields of a `DeadLetterFilter`."""
    options = [
        click.option("--topic", help="Only of records of this topic."),
        click.option("--partition", type=click.IntRange(min=0), help="Only of records of this partition."),
        click.option(
            "--offset",
            "offsets",
            type=click.IntRange(min=0),
            multiple=True,
            help="Only of the record at this offset of its partition; may be given again.",
        ),
        click.option("--stage", help="Only of this stage, such as TRANSFORMATION."),
        click.option("--reason", metavar="TEXT", help="Only with this text in the reason, in any case."),
        click.option("--since", metavar="TIME", callback=_time, help="Only of records from this time on."),
        click.option("--until", metavar="TIME", callback=_time, help="Only of records before this time."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_connector = click.argument("connector", metavar="CONNECTOR", shell_complete=connector_names)


@dlq.command(
    epilog="\b\nExamples:\n  icestream dlq show sink\n"
    "  icestream dlq show sink --stage TRANSFORMATION --reason amount\n"
    "  icestream dlq show sink --since 2026-11-15T10:00 --not-replayed -o json\n\n"
    "Times are UTC unless they say otherwise."
)
@_connector
@_filter_options
@click.option("--not-replayed", is_flag=True, help="Only those that were not sent again yet.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Only so many, the newest."
)
@output_option
@reaches_kafka
@talks_to_a_worker
def show(
    client: ConnectClient,
    /,
    connector: str,
    not_replayed: bool,
    limit: int,
    output: str,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
    **wanted: Any,
) -> None:
    """Show dead letters of CONNECTOR: where each is from, what was wrong with it, how it begins.

    Works with every Kafka Connect whose queue has context headers
    (errors.deadletterqueue.context.headers.enable).
    """
    from icestream.jobs.publishing.dead_letters import DeadLetterFilter

    queue = _queue(connector, known(client, connector, config, bootstrap_servers, worker))
    try:
        count = 0
        newest: deque[tuple[DeadLetter, bool]] = deque(maxlen=limit)
        for letter, replayed in queue.dead_letters(DeadLetterFilter(**wanted)):
            if not (replayed and not_replayed):
                newest.append((letter, replayed))
                count += 1
    finally:
        queue.close()
    if output == "json":
        from icestream.jobs.letters.rows import document_of

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
    "  icestream dlq replay sink --reason amount\n"
    "  icestream dlq replay sink --to-topic orders-again\n\nTimes are UTC unless they say otherwise."
)
@_connector
@_filter_options
@click.option("--limit", type=click.IntRange(min=1), help="Only so many, the oldest.")
@click.option("--to-topic", help="Send all of them there, instead of where each is from.")
@click.option(
    "--skip-unsendable",
    is_flag=True,
    help="Leave out those that lack their value, or the topic they are from.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many it would be.")
@reaches_kafka
@talks_to_a_worker
def replay(
    client: ConnectClient,
    /,
    connector: str,
    limit: int | None,
    to_topic: str | None,
    skip_unsendable: bool,
    dry_run: bool,
    config: Path | None,
    bootstrap_servers: str | None,
    worker: Path | None,
    **wanted: Any,
) -> None:
    """Send dead letters of CONNECTOR to the topics they are from, each at most once.

    They go with their own key, value, headers and timestamp, and without the headers about the error. What
    was sent is remembered with it, in one transaction: run it again after whatever happened. They stay in
    their queue. Every reader of the topic gets them, not only CONNECTOR.
    """
    from icestream.jobs.letters.replay import Request
    from icestream.jobs.publishing.dead_letters import DeadLetterFilter

    request = Request(DeadLetterFilter(**wanted), limit, to_topic, skip_unsendable)
    queue = _queue(connector, known(client, connector, config, bootstrap_servers, worker))
    try:
        selection = queue.selection(request)
        before = f", {selection.sent_already:,} were sent before" if selection.sent_already else ""
        targets = ", ".join([to_topic] if to_topic else sorted(selection.origins))
        if dry_run or not selection.count:
            there = f" to {targets}" if targets else ""
            click.echo(f"{selection.count:,} dead letters would be sent{there}{before}")
            return
        sent = sum(queue.replay(request))
        click.echo(f"{sent:,} dead letters sent to {targets}{before}")
    finally:
        queue.close()


def _queue(connector: str, found: tuple[Mapping[str, str], Mapping[str, str]]) -> DeadLetterQueue:
    from icestream import logs
    from icestream.jobs.letters.replay import DeadLetterQueue

    logs.configure("ERROR")
    return DeadLetterQueue(connector, *found)


def hint_about(letters: Sequence[DeadLetter]) -> str | None:
    """Why the first columns are empty, if they are."""
    silent = sum(letter.origin is None for letter in letters)
    if not silent:
        return None
    return (
        f"{silent:,} of them do not say where they are from, and why; later ones do with "
        "errors.deadletterqueue.context.headers.enable=true in the connector's config"
    )


def cells_of(letter: DeadLetter, replayed: bool) -> list[str]:
    """A row of the table whose columns are `HEAD`."""
    from icestream.jobs.letters.rows import row_of

    row = row_of(letter, replayed)
    row["time"] = f"{letter.time:%Y-%m-%d %H:%M:%S}" if letter.time else None
    row["replayed"] = "yes" if replayed else "no"
    names = ("topic", "partition", "offset", "stage", "reason", "time", "key", "value", "replayed")
    return [NOTHING if row[name] is None else _shortened(str(row[name])) for name in names]


def _shortened(text: str) -> str:
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"
