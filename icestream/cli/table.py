"""`icestream table`: the maintenance of one table by hand, and its history."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from icestream.api.errors import NotFoundError, PreconditionError
from icestream.cli.kafka_access import known
from icestream.cli.tables import NOTHING, Column, table_lines
from icestream.cli.worker_options import output_option, print_json, print_lines, talks_to_a_worker

if TYPE_CHECKING:
    from icestream.api.maintenance import HistoryEntry, Maintainer, MaintenanceStep
    from icestream.client import ConnectClient

T = TypeVar("T")

_UNITS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_HISTORY: Final = (
    Column("time"),
    Column("snapshot"),
    Column("operation"),
    Column("by"),
    Column("files", is_number=True),
    Column("rows", is_number=True),
    Column("all files", is_number=True),
    Column("all rows", is_number=True),
    Column("names"),
)


class Duration(click.ParamType[int]):
    """A time such as 5d or 90min, in milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"([0-9]{1,9})\s*(ms|s|min|h|d)", str(value).strip())
        if found is None:
            self.fail(f"'{value}' is not a time; write 5d, 12h, 30min or 90s", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.group(short_help="Compact, expire and clean a table, and show its history.")
def table() -> None:
    """Maintain one table by hand; a connector with maintenance switched on does the same by itself.

    Nothing of this stops a job that writes to the table: who commits first wins, and the other looks again.
    """


def _finds_a_table(command: Callable[..., T]) -> Callable[..., T]:
    """The options that `_maintainer` needs."""
    options: list[Callable[[Any], Any]] = [
        click.argument("name"),
        click.option(
            "--connector", help="Whose table it is.  [default: the connector of the worker that names it]"
        ),
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The connector's file, instead of asking the worker.",
        ),
        click.option(
            "--set",
            "pairs",
            multiple=True,
            metavar="KEY=VALUE",
            help="A key of the config, instead of that of the file or the worker; may be given again.",
        ),
        click.option(
            "--worker",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="The worker's properties file, for its config providers.",
        ),
        output_option,
        talks_to_a_worker,
    ]
    for option in reversed(options):
        command = option(command)
    return command


_dry_run = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@table.command(
    epilog="\b\nExample:\n  icestream table compact streaming.apilogs --dry-run\n"
    "  icestream table compact streaming.apilogs --config sink.json --min-files 2"
)
@click.option("--min-files", type=click.IntRange(2), help="So many small files of a partition are merged.")
@click.option("--target-bytes", type=click.IntRange(1024), help="The size of merged files.")
@_dry_run
@_finds_a_table
def compact(
    client: ConnectClient,
    min_files: int | None,
    target_bytes: int | None,
    dry_run: bool,
    output: str,
    **found: Any,
) -> None:
    """Merge small files of the table NAME, apply deletes of rows to them, and merge its manifests."""
    options = _given({"min-files": min_files, "target-bytes": target_bytes})
    with closing(_maintainer(client, **found)) as maintainer:
        _show(maintainer.compact(options, dry_run=dry_run), dry_run, output)


@table.command(
    epilog="\b\nExample:\n  icestream table expire streaming.apilogs --older-than 2d --retain-last 50"
)
@click.option("--older-than", type=Duration(), help="Snapshots of this age expire, such as 5d or 12h.")
@click.option("--retain-last", type=click.IntRange(1), help="So many of each branch stay, however old.")
@_dry_run
@_finds_a_table
def expire(
    client: ConnectClient,
    older_than: int | None,
    retain_last: int | None,
    dry_run: bool,
    output: str,
    **found: Any,
) -> None:
    """Expire old snapshots of the table NAME, and remove the files that only they had.

    Branches and tags stay, and the checkpoint of every job.
    """
    options = _given({"older-than-ms": older_than, "retain-last": retain_last})
    with closing(_maintainer(client, **found)) as maintainer:
        _show(maintainer.expire(options, dry_run=dry_run), dry_run, output)


@table.command(epilog="\b\nExample:\n  icestream table orphans streaming.apilogs --older-than 7d --dry-run")
@click.option("--older-than", type=Duration(), help="Files of this age are removed; at least 1d.")
@_dry_run
@_finds_a_table
def orphans(client: ConnectClient, older_than: int | None, dry_run: bool, output: str, **found: Any) -> None:
    """Remove files below the location of the table NAME that no snapshot has.

    What a live batch may have staged stays, whatever its age.
    """
    options = _given({"older-than-ms": older_than})
    with closing(_maintainer(client, **found)) as maintainer:
        _show(maintainer.orphans(options, dry_run=dry_run), dry_run, output)


@table.command(epilog="\b\nExample:\n  icestream table history streaming.apilogs --last 20")
@click.option("--last", type=click.IntRange(1), help="Only so many.")
@_finds_a_table
def history(client: ConnectClient, last: int | None, output: str, **found: Any) -> None:
    """Show the snapshots of the table NAME: who made them, and what they changed."""
    with closing(_maintainer(client, **found)) as maintainer:
        entries = list(maintainer.history())[-(last or 0) :]
    if output == "json":
        print_json([{**asdict(entry), "at": entry.at.isoformat()} for entry in entries])
    elif entries:
        print_lines(table_lines(_HISTORY, [_row(entry) for entry in entries]))
    else:
        print_lines(["the table has no snapshot yet"])


def _row(entry: HistoryEntry) -> tuple[str, ...]:
    return (
        entry.at.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z"),
        entry.id,
        entry.operation,
        entry.by or NOTHING,
        _change(entry.added_files, entry.removed_files),
        _change(entry.added_rows, entry.removed_rows),
        NOTHING if entry.total_files is None else f"{entry.total_files:,}",
        NOTHING if entry.total_rows is None else f"{entry.total_rows:,}",
        ", ".join(entry.names),
    )


def _change(added: int, removed: int) -> str:
    parts = [f"+{added:,}" if added else "", f"-{removed:,}" if removed else ""]
    return " ".join(part for part in parts if part) or NOTHING


def _given(options: Mapping[str, int | None]) -> dict[str, int]:
    return {name: value for name, value in options.items() if value is not None}


def _show(steps: Sequence[MaintenanceStep], dry_run: bool, output: str) -> None:
    if output == "json":
        print_json({"dry_run": dry_run, "steps": [asdict(step) for step in steps]})
        return
    lines = []
    for step in steps:
        said = [f"{step.name}: {step.before:,} {step.counted}"]
        if step.before != step.after:
            said.append(f" {'would be' if dry_run else 'are now'} {step.after:,}")
        elif not step.did_something:
            said.append(", nothing to do")
        if step.removed_files:
            size = f" of {step.removed_bytes:,} bytes" if step.removed_bytes else ""
            said.append(f"; {step.removed_files:,} files{size} {'would be' if dry_run else 'were'} removed")
        if step.note:
            said.append(f"; {step.note}")
        lines.append(f"{''.join(said)} ({step.seconds:.2f} s)")
    print_lines(lines)


def _maintainer(
    client: ConnectClient,
    name: str,
    connector: str | None,
    config: Path | None,
    pairs: Sequence[str],
    worker: Path | None,
) -> Maintainer:
    from icestream import logs

    logs.configure("ERROR")
    given = dict(_pair(pair) for pair in pairs)
    if config is None and connector is None and "connector.class" not in given:
        connector = _connector_of(client, name)
    if config is not None or connector is not None:
        found, _ = known(client, connector or "", config, None, worker)
        given = {**found, **given}
    whose = connector or given.get("name", "")
    maintainer = _offered(whose, given, name)
    if maintainer is None:
        raise PreconditionError(
            f"connector class '{given.get('connector.class', '')}' maintains no tables; name another "
            "connector with --connector or --config"
        )
    return maintainer


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.BadParameter(f"'{text}' is not of the form key=value", param_hint="--set")
    return key.strip(), value


def _offered(connector: str, config: Mapping[str, str], table_name: str) -> Maintainer | None:
    from icestream.api.sink import SinkPlugin
    from icestream.plugins import find_connector

    plugin = find_connector(config.get("connector.class", "")).plugin
    if not isinstance(plugin, SinkPlugin):
        return None
    return plugin.maintainer(connector, config, table_name)


def _connector_of(client: ConnectClient, table_name: str) -> str:
    """The connector of the worker that has the table in one of its lists."""
    found = []
    for connector in client.names():
        values = client.config(connector).values()
        if any(table_name in (part.strip() for part in value.split(",")) for value in values):
            found.append(connector)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(
            f"no connector at {client.url} names the table '{table_name}'; "
            "name one with --connector or --config"
        )
    raise PreconditionError(
        f"the connectors {', '.join(found)} name the table '{table_name}'; choose one with --connector"
    )
