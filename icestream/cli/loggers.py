"""`icestream loggers`: the levels of a worker's loggers."""

from __future__ import annotations

import time
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


def _logger_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return completed(ctx, incomplete, lambda client: client.loggers())


@click.command(
    epilog="\b\nExample:\n  icestream loggers\n  icestream loggers icestream.jobs DEBUG\n"
    "  icestream loggers root WARN --cluster\n"
    f"  icestream connector loggers root   # the same as: icestream loggers root\n\n{EXIT_CODES}",
    short_help="Show and set log levels.",
)
@click.argument("name", required=False, shell_complete=_logger_names)
@click.argument("level", required=False)
@click.option("--cluster", "whole_cluster", is_flag=True, help="Set it on every worker of the cluster.")
@output_option
@talks_to_a_worker
def loggers(
    client: ConnectClient, name: str | None, level: str | None, whole_cluster: bool, output: str
) -> None:
    """List the loggers of a worker, show the one called NAME, or set its LEVEL.

    LEVEL is ERROR, WARN, INFO, DEBUG or TRACE; it lasts until the worker is restarted.
    """
    if whole_cluster and not level:
        raise click.UsageError("--cluster needs a LEVEL to set", click.get_current_context())
    if name and level:
        changed = client.set_logger(name, level.upper(), whole_cluster=whole_cluster)
        _tell(name, level.upper(), changed, output)
        return
    found = {name: client.logger(name)} if name else client.loggers()
    if output == "json":
        print_json(found[name] if name else found)
    else:
        rows = [(logger, str(it.get("level") or NOTHING), _moment(it)) for logger, it in found.items()]
        print_lines(table_lines([Column("logger"), Column("level"), Column("last modified")], rows))


def _tell(name: str, level: str, changed: list[str], output: str) -> None:
    if output == "json":
        print_json(changed)
    else:
        print_lines([f"logger {logger} set to {level}" for logger in changed or [name]])


def _moment(logger: Mapping[str, Any]) -> str:
    modified = logger.get("last_modified")
    return (
        NOTHING if modified is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(modified / 1000))
    )
