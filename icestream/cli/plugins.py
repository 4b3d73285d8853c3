"""`icestream plugins`: what a worker can run, and the keys of its configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from icestream.cli.tables import NOTHING, Column, table_lines
from icestream.cli.worker_options import (
    EXIT_CODES,
    completed,
    output_option,
    print_json,
    print_lines,
    talks_to_a_worker,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from icestream.client import ConnectClient

_KEYS = (Column("key"), Column("type"), Column("default"), Column("importance"), Column("documentation"))
_REQUIRED = "(required)"


def _plugin_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return completed(ctx, incomplete, lambda client: [plugin["class"] for plugin in client.plugins()])


@click.command(
    epilog="\b\nExample:\n  icestream plugins --all\n  icestream plugins IcebergSink\n"
    f"  icestream connector plugins --all   # the same\n\n{EXIT_CODES}",
    short_help="What a worker can run, and its config keys.",
)
@click.argument("name", required=False, shell_complete=_plugin_names)
@click.option("--all", "is_all", is_flag=True, help="Converters, transforms and predicates as well.")
@output_option
@talks_to_a_worker
def plugins(client: ConnectClient, name: str | None, is_all: bool, output: str) -> None:
    """List the connector plugins of a worker, or the config keys of the one called NAME.

    NAME is a class, its last part, or that without 'Connector'.
    """
    found = client.plugin_config(name) if name else client.plugins(connectors_only=not is_all)
    if output == "json":
        print_json(found)
    elif name:
        print_lines(table_lines(_KEYS, [_key_row(key) for key in found]))
    else:
        rows = [(str(it["class"]), str(it["type"]), str(it.get("version") or NOTHING)) for it in found]
        print_lines(table_lines([Column("class"), Column("type"), Column("version")], rows))


def _key_row(key: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    default = key.get("default_value")
    shown = _REQUIRED if key["required"] else NOTHING if default in (None, "") else str(default)
    words = str(key.get("documentation") or "")
    return key["name"], key["type"].lower(), shown, key["importance"].lower(), words.partition(". ")[0]
