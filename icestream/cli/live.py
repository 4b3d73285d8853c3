"""What a command does over time, `--watch` and `--wait`, by a clock that tests replace."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from icestream.api.errors import IcestreamError, NotFoundError
from icestream.cli.lines import one_line

if TYPE_CHECKING:
    from icestream.client import ConnectClient, ConnectorView

_WATCH_EVERY: Final = 1.0
_LOOK_EVERY: Final = 0.5
SETTLED: Final = ("RUNNING", "PAUSED", "STOPPED")
"""States that a healthy connector stays in."""
_OUR_ERROR: Final = re.compile(r"^icestream\.api\.errors\.\w+: ")
_UP, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[{}F", "\x1b[K", "\x1b[J"


@dataclass(frozen=True)
class Clock:
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def clock() -> Clock:
    """The clock of the running command; tests give another as click's `obj`."""
    return click.get_current_context().find_object(Clock) or Clock()


def watch(picture: Callable[[int | None], list[str]]) -> None:
    """Show a picture again every second, until Ctrl-C. In a terminal it gets the width, and stays in place.

    When a worker goes away or is busy while we look, that is told in the picture's place.
    """
    screen = _screen()
    height = 0
    with suppress(KeyboardInterrupt):
        lines = picture(screen.columns if screen else None)
        while True:
            height = _draw(lines, screen, height)
            clock().sleep(_WATCH_EVERY)
            screen = _screen()
            try:
                lines = picture(screen.columns if screen else None)
            except IcestreamError as error:
                lines = [one_line(str(error))]


def _screen() -> os.terminal_size | None:
    return shutil.get_terminal_size() if sys.stdout.isatty() else None


def _draw(lines: Sequence[str], screen: os.terminal_size | None, before: int) -> int:
    """Draw over the picture before, which had so many lines; returns how many this one has."""
    if screen is None:
        click.echo("\n".join(lines))
        return 0
    # Not click.echo: without colours it would take away the moves of the cursor as well.
    is_plain = click.get_current_context().color is False
    shown = [click.unstyle(line) if is_plain else line for line in lines[: screen.lines - 1]]
    start = _UP.format(before) if before else ""
    sys.stdout.write(start + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN)
    sys.stdout.flush()
    return len(shown)


def wait_for(client: ConnectClient, name: str, states: Collection[str], timeout: float) -> None:
    """Return when a connector and its tasks are in one of the states; raise when they fail.

    Only what two looks in a row see counts: the first may be of the time before a change.
    """
    time_left = clock()
    deadline = time_left.now() + timeout
    before = ""
    while True:
        view = _look(client, name)
        seen = overall_state(view) if view else "UNASSIGNED"
        if seen == before and seen in states:
            return
        if seen == before == "FAILED":
            raise IcestreamError(f"connector '{name}' failed{_because(view)}")
        if time_left.now() >= deadline:
            raise IcestreamError(
                f"connector '{name}' is {seen} after {timeout:g} s; see 'icestream connector status'"
            )
        before = seen
        time_left.sleep(_LOOK_EVERY)


def overall_state(view: ConnectorView) -> str:
    """FAILED if the connector or a task is; the state that all share; else that of one which lags behind."""
    states = [view.state, *(task.state for task in view.tasks)]
    if "FAILED" in states:
        return "FAILED"
    return next((state for state in states if state != view.state), view.state)


def reason(view: ConnectorView) -> str | None:
    """Why something of a connector failed, in one line."""
    traces = [view.trace, *(task.trace for task in view.tasks)]
    return next((_gist(trace) for trace in traces if trace and trace.strip()), None)


def _gist(trace: str) -> str:
    """The line of a trace that says what went wrong: our own error, Java's last cause, Python's last line."""
    lines = trace.strip().splitlines()
    if _OUR_ERROR.match(lines[-1]):
        return _OUR_ERROR.sub("", lines[-1])
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if causes:
        return causes[-1]
    return lines[0] if any(line.startswith("\tat ") for line in lines) else lines[-1]


def _because(view: ConnectorView | None) -> str:
    why = reason(view) if view else None
    return f": {why}" if why else ""


def _look(client: ConnectClient, name: str) -> ConnectorView | None:
    """The status; None while a new connector has none."""
    try:
        return client.status(name)
    except NotFoundError:
        return None
