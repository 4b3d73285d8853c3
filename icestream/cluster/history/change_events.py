"""What a change of a stored connector is called in its list of events. Pure. Used by the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from icestream.cluster.stores.connector_store import StoredConnector, TargetState

ACTING_USER: Final[ContextVar[str]] = ContextVar("icestream_acting_user", default="")
"""Who has logged in and asks for what is being done; set by REST for each request."""
_MOST_KEYS: Final = 20
_ASKED: Final = {
    TargetState.STARTED: "it is to run",
    TargetState.PAUSED: "it is to pause",
    TargetState.STOPPED: "it is to stop",
}


def changes(before: StoredConnector | None, after: StoredConnector) -> Iterator[tuple[str, str]]:
    """The kind of each event, and its sentence. Keys of configs only: values may be secret."""
    if before is None:
        yield "config", f"created with {len(after.config)} keys"
        return
    if before.config != after.config:
        yield "config", _changed_keys(before, after)
    if before.target is not after.target:
        yield "state", _ASKED[after.target]
    if before.restarts != after.restarts:
        yield "restart", "a restart was asked for"


def _changed_keys(before: StoredConnector, after: StoredConnector) -> str:
    old, new = before.config, after.config
    parts = {
        "set": sorted(new.keys() - old.keys()),
        "changed": sorted(key for key in new.keys() & old.keys() if new[key] != old[key]),
        "removed": sorted(old.keys() - new.keys()),
    }
    return "; ".join(f"{what}: {_listed(keys)}" for what, keys in parts.items() if keys)


def _listed(keys: list[str]) -> str:
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    return ", ".join(keys[:_MOST_KEYS]) + more
