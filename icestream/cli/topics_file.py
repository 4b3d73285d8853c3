"""`icestream topics-file`: one connector for each topic of a YAML file, shown, or given to a worker."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from icestream.api.errors import NotFoundError
from icestream.cli.changes import change_all
from icestream.cli.worker_options import (
    EXIT_CODES,
    output_option,
    print_json,
    talks_to_a_worker,
    wait_options,
)

if TYPE_CHECKING:
    from icestream.client import ConnectClient
    from icestream.cluster.configs.properties import ConnectorFile

_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(
    name="topics-file",
    epilog=f"\b\nExample:\n  icestream topics-file apply application.yml --dry-run\n\n{EXIT_CODES}",
    short_help="Connectors from a file that lists topics.",
)
def topics_file() -> None:
    """One connector for each topic of FILE, whose 'connector.topics' says where each topic goes.

    Environment variables have what the file does not say; docs/topics-file.md lists them.
    """


@topics_file.command(epilog="\b\nExample:\n  icestream topics-file show application.yml")
@_FILE
def show(file: Path) -> None:
    """Print the connectors that the file stands for, as JSON. Asks no worker."""
    print_json([{"name": one.name, "config": one.config} for one in connectors_of(file, os.environ)])


@topics_file.command(
    epilog="\b\nExample:\n  icestream topics-file apply application.yml --wait\n"
    "  icestream topics-file apply application.yml --dry-run"
)
@_FILE
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and show the configs.")
@wait_options
@output_option
@talks_to_a_worker
def apply(client: ConnectClient, file: Path, dry_run: bool, wait: bool, timeout: float, output: str) -> None:
    """Create the connectors of the file, or give them their new configs.

    One that has its config already is left alone; so are connectors that are not in the file.
    """
    from icestream.cli.live import SETTLED, wait_for

    found = {one.name: one for one in connectors_of(file, os.environ)}

    def apply_one(name: str) -> str:
        result = _difference(client, found[name])
        if dry_run:
            return f"{result} (dry run)"
        if result == "created":
            client.create(name, found[name].config)
        elif result == "updated":
            client.put_config(name, found[name].config)
        return result

    def settle(name: str) -> None:
        wait_for(client, name, SETTLED, timeout)

    change_all(output, found, apply_one, settle if wait and not dry_run else None)
    if dry_run and output != "json":
        _show(list(found.values()))


def connectors_of(file: Path, environ: Mapping[str, str]) -> Sequence[ConnectorFile]:
    from icestream.cluster.topics_file import read_topics_file, rules_for

    return read_topics_file(file, rules_for(environ))


def _difference(client: ConnectClient, file: ConnectorFile) -> str:
    try:
        before = client.config(file.name)
    except NotFoundError:
        return "created"
    return "unchanged" if before == file.config else "updated"


def _show(connectors: Sequence[ConnectorFile]) -> None:
    from icestream.cli.lines import one_line

    for one in connectors:
        click.echo()
        for key, value in one.config.items():
            click.echo(f"{key}={one_line(value)}")
