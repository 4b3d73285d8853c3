"""A worker's keys about its web console. `rest_settings.py` reads them, `rest/console/` obeys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from icestream.api.config import Setting, Type

if TYPE_CHECKING:
    from icestream.cluster.settings.rest_settings import Listener

LISTENERS: Final = "icestream.console.listeners"
HOSTS: Final = "icestream.console.hosts"
_HOST: Final = re.compile(r"[0-9A-Za-z._-]+(:[0-9]+)?|\[[0-9A-Fa-f:]+\](:[0-9]+)?")


class Level(IntEnum):
    """What people may do in the console; each level may do all that the ones before it may."""

    OFF = 0
    VIEW = 1
    """See states, numbers and names: no values of configs, no payloads, no changes."""
    OPERATE = 2
    """And pause, resume, stop, restart and replay."""
    EDIT = 3
    """And configs, offsets, deletions and loggers."""

    @classmethod
    def of(cls, word: str) -> Level:
        return cls[word.strip().upper()]


LEVELS: Final = tuple(level.name.lower() for level in Level)


@dataclass(frozen=True)
class ConsoleConfig:
    """`listeners` is None if the console is where REST is."""

    level: Level = Level.EDIT
    listeners: tuple[Listener, ...] | None = None
    hosts: tuple[str, ...] = ()
    shows_payloads: bool = True


def _hosts_problem(hosts: Sequence[str]) -> str | None:
    wrong = [host for host in hosts if not _HOST.fullmatch(host)]
    return f"'{wrong[0]}' is not a host; write names such as connect.example.com" if wrong else None


CONSOLE_SETTINGS: Final = (
    Setting(
        "icestream.console",
        Type.STRING,
        "edit",
        "The web console at /console/, and what it lets people do: off, view, operate or edit.",
        choices=LEVELS,
    ),
    Setting(
        LISTENERS,
        Type.LIST,
        None,
        "Where the console listens: http://host:port or https://host:port; absent: on 'listeners'.",
        importance="LOW",
    ),
    Setting(
        HOSTS,
        Type.LIST,
        [],
        "Names by which browsers reach the console, such as those of a proxy; addresses and its own names "
        "need not be listed.",
        importance="LOW",
        check=_hosts_problem,
    ),
    Setting(
        "icestream.console.payloads",
        Type.BOOLEAN,
        True,
        "Whether the console shows keys, values and headers of dead letters.",
        importance="LOW",
    ),
)
