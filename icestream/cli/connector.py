"""`icestream connector …`: everything that can be done to connectors, over the REST API of a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from icestream.api.errors import ConfigError, IcestreamError, NotFoundError, Problem
from icestream.cli.changes import change_all
from icestream.cli.connector_offsets import offsets
from icestream.cli.connector_status import status
from icestream.cli.connector_topics import topics
from icestream.cli.live import SETTLED, wait_for
from icestream.cli.loggers import loggers
from icestream.cli.plugins import plugins
from icestream.cli.tables import Column, table_lines
from icestream.cli.worker_options import (
    EXIT_CODES,
    Command,
    T,
    called,
    matching,
    name_argument,
    names_argument,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
    wait_options,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient
    from icestream.cluster.configs.properties import ConnectorFile


@click.group(
    epilog="\b\nExample:\n  icestream connector apply -f sink.json --wait\n"
    f"  icestream connector restart 'iceberg-*' --tasks --only-failed\n\n{EXIT_CODES}",
    short_help="Create, change, steer and examine connectors.",
)
def connector() -> None:
    """Create, change, steer and examine connectors, of Icestream or of any Kafka Connect.

    Where several NAMEs are taken, each may be a pattern, such as 'iceberg-*'.
    """


connector.add_command(offsets)
connector.add_command(topics)
connector.add_command(status)
# Also by themselves, as `icestream plugins` and `icestream loggers`.
connector.add_command(plugins)
connector.add_command(loggers)


def _files(command: Command[T]) -> Command[T]:
    # The arguments are for shells: `-f *.json` arrives here as `-f a.json b.json`.
    more = click.argument("more", metavar="[FILE]...", nargs=-1, type=click.File("rb"))
    name = click.option("-n", "--name", help="The connector's name, for a file that has none.")
    files = click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        required=True,
        type=click.File("rb"),
        help="A connector as .properties or JSON ({name, config} or a flat map); - is stdin. Repeatable.",
    )
    return files(name(more(command)))


@connector.command(
    epilog="\b\nExample:\n  icestream connector create -f sink.json\n"
    "  icestream connector create -f sink.properties --state stopped"
)
@_files
@click.option(
    "--state",
    type=click.Choice(["running", "paused", "stopped"]),
    help="The state to begin in.  [default: the file's, or running]",
)
@wait_options
@output_option
@talks_to_a_worker
def create(
    client: ConnectClient,
    files: Sequence[IO[bytes]],
    more: Sequence[IO[bytes]],
    name: str | None,
    state: str | None,
    wait: bool,
    timeout: float,
    output: str,
) -> None:
    """Create connectors; one that exists already is an error."""
    found = _read([*files, *more], name)

    def create_one(name: str) -> str:
        file = found[name]
        client.create(name, file.config, state.upper() if state else file.initial_state)
        return "created"

    def wait_for_one(name: str) -> None:
        wait_for(client, name, [(state or found[name].initial_state or "running").upper()], timeout)

    change_all(output, found, create_one, wait_for_one if wait else None)


@connector.command(
    epilog="\b\nExample:\n  icestream connector apply -f sink.json --wait\n"
    "  icestream connector config old -o json | icestream connector apply -f - --dry-run"
)
@_files
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@wait_options
@output_option
@talks_to_a_worker
def apply(
    client: ConnectClient,
    files: Sequence[IO[bytes]],
    more: Sequence[IO[bytes]],
    name: str | None,
    dry_run: bool,
    wait: bool,
    timeout: float,
    output: str,
) -> None:
    """Create connectors, or give them a new config.

    One that has this config already is left alone.
    """
    found = _read([*files, *more], name)

    def apply_one(name: str) -> str:
        result = _difference(client, found[name])
        if dry_run:
            return f"{result} (dry run)"
        if result == "created":
            client.create(name, found[name].config, found[name].initial_state)
        elif result == "configured":
            client.put_config(name, found[name].config)
        return result

    change_all(output, found, apply_one, _settles(client, timeout) if wait and not dry_run else None)


@connector.command(
    epilog="\b\nExample:\n  icestream connector delete sink\n  icestream connector delete 'test-*'"
)
@names_argument()
@click.option("--ignore-missing", is_flag=True, help="One that is not there is no error.")
@output_option
@talks_to_a_worker
def delete(client: ConnectClient, patterns: Sequence[str], ignore_missing: bool, output: str) -> None:
    """Delete connectors. What they have written stays."""

    def delete_one(name: str) -> str:
        try:
            client.delete(name)
        except NotFoundError:
            if not ignore_missing:
                raise
            return "not found"
        return "deleted"

    names = matching(client, patterns, may_miss=ignore_missing)
    change_all(output, names, delete_one)


@connector.command(epilog="\b\nExample:\n  icestream connector pause sink --wait")
@names_argument()
@wait_options
@output_option
@talks_to_a_worker
def pause(client: ConnectClient, patterns: Sequence[str], wait: bool, timeout: float, output: str) -> None:
    """Pause connectors: their jobs stay, and do nothing."""
    _steer(client, patterns, output, client.pause, "paused", timeout if wait else None)


@connector.command(epilog="\b\nExample:\n  icestream connector resume sink --wait")
@names_argument()
@wait_options
@output_option
@talks_to_a_worker
def resume(client: ConnectClient, patterns: Sequence[str], wait: bool, timeout: float, output: str) -> None:
    """Let paused or stopped connectors run again."""
    _steer(client, patterns, output, client.resume, "running", timeout if wait else None)


@connector.command(epilog="\b\nExample:\n  icestream connector stop sink --wait")
@names_argument()
@wait_options
@output_option
@talks_to_a_worker
def stop(client: ConnectClient, patterns: Sequence[str], wait: bool, timeout: float, output: str) -> None:
    """Stop connectors: their jobs end, their configs and offsets stay."""
    _steer(client, patterns, output, client.stop, "stopped", timeout if wait else None)


@connector.command(
    epilog="\b\nExample:\n  icestream connector restart sink --wait\n"
    "  icestream connector restart '*' --tasks --only-failed"
)
@names_argument()
@click.option("--tasks", is_flag=True, help="Its tasks as well.")
@click.option("--only-failed", is_flag=True, help="Only what is FAILED.")
@wait_options
@output_option
@talks_to_a_worker
def restart(
    client: ConnectClient,
    patterns: Sequence[str],
    tasks: bool,
    only_failed: bool,
    wait: bool,
    timeout: float,
    output: str,
) -> None:
    """Restart connectors."""

    def restart_one(name: str) -> str:
        parts = client.restart(name, include_tasks=tasks, only_failed=only_failed)
        return "has nothing to restart" if parts == 0 else "restarted"

    names = matching(client, patterns)
    change_all(output, names, restart_one, _settles(client, timeout) if wait else None)


@connector.command(
    epilog="\b\nExample:\n  icestream connector config sink\n"
    "  icestream connector config sink -o json > sink.json\n"
    "  icestream connector config sink --set tasks.max=4 --unset errors.tolerance"
)
@name_argument
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key. Repeatable.")
@click.option("--unset", "removed", multiple=True, metavar="KEY", help="Remove a key. Repeatable.")
@output_option
@talks_to_a_worker
def config(
    client: ConnectClient, name: str, settings: Sequence[str], removed: Sequence[str], output: str
) -> None:
    """Show a connector's config, or change some keys of it.

    The table hides passwords and other secrets; JSON is what the worker says.
    """
    if not settings and not removed:
        _show_config(client.config(name), output)
        return
    wanted: dict[str, str | None] = {**_pairs(settings), **dict.fromkeys(removed)}

    def change(name: str) -> str:
        before = client.config(name)
        if all(before.get(key) == value for key, value in wanted.items()):
            return "unchanged"
        client.patch_config(name, wanted)
        return "configured"

    change_all(output, [name], change)


@connector.command(epilog="\b\nExample:\n  icestream connector validate -f sink.json")
@_files
@output_option
@talks_to_a_worker
def validate(
    client: ConnectClient,
    files: Sequence[IO[bytes]],
    more: Sequence[IO[bytes]],
    name: str | None,
    output: str,
) -> None:
    """Let the worker check configs, and change nothing.

    Exits with 1 if it finds an error.
    """
    found = _read([*files, *more], name)
    reports = {name: client.validate(_class_of(file), file.config) for name, file in found.items()}
    if output == "json":
        documents = list(reports.values())
        print_json(documents[0] if len(documents) == 1 else documents)
    else:
        for name, report in reports.items():
            print_lines(_report_lines(name, report))
    if any(report.get("error_count") for report in reports.values()):
        click.get_current_context().exit(1)


def _read(files: Sequence[IO[bytes]], name: str | None) -> dict[str, ConnectorFile]:
    """All files by connector, before the first is sent."""
    from icestream.cluster.configs.properties import decoded, parse_connector

    if name is not None and len(files) > 1:
        raise click.UsageError("--name is for one file; write the names into the files", _context())
    found: dict[str, ConnectorFile] = {}
    for file in files:
        read = parse_connector(decoded(file.read()), called(file), name)
        if read.name in found:
            raise ConfigError([Problem("name", f"two files are of connector '{read.name}'; send one")])
        found[read.name] = read
    return found


def _difference(client: ConnectClient, file: ConnectorFile) -> str:
    try:
        before = client.config(file.name)
    except NotFoundError:
        return "created"
    return "unchanged" if before == {**file.config, "name": file.name} else "configured"


def _steer(
    client: ConnectClient,
    patterns: Sequence[str],
    output: str,
    act: Callable[[str], None],
    state: str,
    timeout: float | None,
) -> None:
    def change(name: str) -> str:
        act(name)
        return "resumed" if state == "running" else state

    def then(name: str) -> None:
        wait_for(client, name, [state.upper()], timeout or 0.0)

    change_all(output, matching(client, patterns), change, None if timeout is None else then)


def _settles(client: ConnectClient, timeout: float) -> Callable[[str], None]:
    return lambda name: wait_for(client, name, SETTLED, timeout)


def _show_config(found: Mapping[str, str], output: str) -> None:
    if output == "json":
        print_json(found)
        return
    from icestream.cluster.configs.masking import masked_config
    from icestream.cluster.configs.reports import settings_of

    shown = masked_config(found, settings_of(found))
    print_lines(table_lines([Column("key"), Column("value")], sorted(shown.items())))


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"'{setting}' is not KEY=VALUE", _context())
        pairs[key.strip()] = value
    return pairs


def _class_of(file: ConnectorFile) -> str:
    found = file.config.get("connector.class", "").strip()
    if not found:
        raise IcestreamError(f"connector '{file.name}' has no 'connector.class'; see 'icestream plugins'")
    return found


def _report_lines(name: str, report: Mapping[str, Any]) -> list[str]:
    errors = [
        (str(checked["value"]["name"]), str(error))
        for checked in report.get("configs", ())
        for error in checked["value"].get("errors", ())
    ]
    warnings = [f"{name}: warning: {warning}" for warning in report.get("warnings", ())]
    if not errors:
        return [*warnings, f"connector {name} is valid"]
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    return [
        *table_lines([Column("key"), Column("error")], errors),
        *warnings,
        f"connector {name} has {count}",
    ]


def _context() -> click.Context:
    return click.get_current_context()
