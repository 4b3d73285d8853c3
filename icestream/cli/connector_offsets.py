"""`icestream connector offsets …`: how far a connector is, and how to move it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

import click

from icestream.api.nesting import read_json
from icestream.cli.tables import NOTHING, Column, table_lines
from icestream.cli.worker_options import (
    called,
    name_argument,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient

_POSITION: Final = re.compile(r"(?P<topic>[^:=\s]+):(?P<partition>\d+)=(?P<offset>\d+|beginning)")


@click.group(
    epilog="\b\nExample:\n  icestream connector stop sink --wait\n  icestream connector offsets reset sink"
)
def offsets() -> None:
    """Show, set and reset a connector's offsets. To change them, stop the connector first."""


@offsets.command(epilog="\b\nExample:\n  icestream connector offsets show sink")
@name_argument
@output_option
@talks_to_a_worker
def show(client: ConnectClient, name: str, output: str) -> None:
    """Show how far a connector is."""
    entries = client.offsets(name)
    if output == "json":
        print_json({"offsets": entries})
    elif not entries:
        click.echo(f"connector {name} has no offsets yet")
    else:
        print_lines(_lines(entries))


@offsets.command(
    "set",
    epilog="\b\nExample:\n  icestream connector offsets set sink apilogs:0=1000 apilogs:1=beginning\n"
    "  icestream connector offsets show source -o json > offsets.json\n"
    "  icestream connector offsets set source -f offsets.json",
)
@name_argument
@click.argument("positions", metavar="[TOPIC:PARTITION=OFFSET]...", nargs=-1)
@click.option(
    "-f",
    "--file",
    type=click.File("rb"),
    help='JSON as \'show -o json\' prints it: {"offsets": [{"partition": …, "offset": …}]}; - is stdin.',
)
@output_option
@talks_to_a_worker
def set_offsets(
    client: ConnectClient, name: str, positions: Sequence[str], file: IO[bytes] | None, output: str
) -> None:
    """Set some offsets of a stopped connector: of a sink as TOPIC:PARTITION=OFFSET, of a source by a file."""
    entries = [_entry(position) for position in positions]
    if file is not None:
        entries += _entries(file)
    if not entries:
        raise click.UsageError("there is nothing to set; write TOPIC:PARTITION=OFFSET or -f", _context())
    _tell(client.alter_offsets(name, entries), output)


@offsets.command(epilog="\b\nExample:\n  icestream connector offsets reset sink")
@name_argument
@output_option
@talks_to_a_worker
def reset(client: ConnectClient, name: str, output: str) -> None:
    """Forget all offsets of a stopped connector: it will begin again at the beginning."""
    _tell(client.reset_offsets(name), output)


def _tell(message: str, output: str) -> None:
    if output == "json":
        print_json({"message": message})
    else:
        click.echo(message)


def _lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    if all("kafka_topic" in entry["partition"] for entry in entries):
        columns = [Column("topic"), Column("partition", is_number=True), Column("offset", is_number=True)]
        return table_lines(columns, sorted(map(_kafka_row, entries), key=lambda row: (row[0], int(row[1]))))
    rows = [(_compact(entry["partition"]), _compact(entry["offset"])) for entry in entries]
    return table_lines([Column("partition"), Column("offset")], rows)


def _kafka_row(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    partition, offset = entry["partition"], entry["offset"] or {}
    return (
        str(partition["kafka_topic"]),
        str(partition.get("kafka_partition", 0)),
        str(offset.get("kafka_offset", NOTHING)),
    )


def _compact(value: object) -> str:
    return NOTHING if value is None else json.dumps(value, ensure_ascii=False)


def _entry(position: str) -> dict[str, Any]:
    match = _POSITION.fullmatch(position)
    if match is None:
        raise click.UsageError(
            f"'{position}' is not TOPIC:PARTITION=OFFSET; the offset is a number or 'beginning'", _context()
        )
    offset = match["offset"]
    return {
        "partition": {"kafka_topic": match["topic"], "kafka_partition": int(match["partition"])},
        "offset": None if offset == "beginning" else {"kafka_offset": int(offset)},
    }


def _entries(file: IO[bytes]) -> list[dict[str, Any]]:
    try:
        document = read_json(file.read())
    except ValueError as error:
        raise click.UsageError(f"{called(file)} is not JSON ({error})", _context()) from None
    entries = document.get("offsets") if isinstance(document, dict) else document
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise click.UsageError(
            f'{called(file)} has no offsets; write {{"offsets": [{{"partition": …, "offset": …}}]}}',
            _context(),
        )
    return entries


def _context() -> click.Context:
    return click.get_current_context()
