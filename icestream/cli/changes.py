"""One change made to several connectors: each result is told, and a failure does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from icestream.api.errors import IcestreamError, WorkerUnreachable
from icestream.cli.lines import complain, one_line
from icestream.cli.worker_options import print_json

T = TypeVar("T")


def change_all(
    output: str,
    names: Iterable[str],
    change: Callable[[str], str],
    then: Callable[[str], None] | None = None,
) -> None:
    """Change each, telling the word that `change` returns: created, paused, …; then do what follows.

    Exit code 1 if one failed.
    """
    told = [_changed(name, change, output) for name in names]
    for entry in told:
        if then and "error" not in entry:
            _attempt(entry, then)
    if output == "json":
        print_json(told)
    if any("error" in entry for entry in told):
        click.get_current_context().exit(1)


def _changed(name: str, change: Callable[[str], str], output: str) -> dict[str, str]:
    entry = {"connector": name}
    result = _attempt(entry, change)
    if result is not None:
        entry["result"] = result
        if output != "json":
            click.echo(f"connector {one_line(name)} {result}")
    return entry


def _attempt(entry: dict[str, str], act: Callable[[str], T]) -> T | None:
    try:
        return act(entry["connector"])
    except WorkerUnreachable:
        raise
    except IcestreamError as error:
        complain(error)
        entry["error"] = str(error)
        return None
