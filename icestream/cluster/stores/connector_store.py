"""Where connectors and their target states are kept, and the stores of a standalone worker: file and memory.

Used by the service. The store of a distributed worker is in `kafka_store`.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from icestream.api.errors import PreconditionError

_FORMAT: Final = 1


class TargetState(StrEnum):
    """What the user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


def target_from(initial_state: str | None) -> TargetState:
    """The target of `initial_state` in a request to create a connector: RUNNING, PAUSED or STOPPED."""
    named = (initial_state or "RUNNING").upper()
    if named == "RUNNING":
        return TargetState.STARTED
    if named in (TargetState.PAUSED, TargetState.STOPPED):
        return TargetState(named)
    raise ValueError(f"initial_state '{initial_state}' is not RUNNING, PAUSED or STOPPED")


@dataclass(frozen=True)
class StoredConnector:
    config: Mapping[str, str]
    target: TargetState = TargetState.STARTED
    restarts: int = 0
    """How often somebody asked for a new job, since this worker opened the store."""
    version: str = field(default="", compare=False)
    """Another one for every config that the store has had, the same on every worker; the store gives it. It
    tells nothing of the config itself, secrets least of all."""


class StoreListener(Protocol):
    """Told of every change, whoever made it. Must not wait: the store may be telling under a lock."""

    def connector_changed(self, name: str) -> None: ...

    def logger_changed(self, namespace: str, level: str) -> None: ...


class ConnectorStore(Protocol):
    """Connectors by name. What `put` and `remove` return from is durable, if the store is."""

    def load(self) -> dict[str, StoredConnector]: ...

    def put(self, name: str, connector: StoredConnector) -> None: ...

    def remove(self, name: str) -> None: ...

    def set_logger(self, namespace: str, level: str) -> None:
        """Tell the logger's level to all workers."""

    def listen(self, listener: StoreListener) -> None: ...

    def close(self) -> None: ...


class MemoryStore:
    def __init__(self) -> None:
        self._connectors: dict[str, StoredConnector] = {}
        self._listener: StoreListener | None = None
        # Of a store that was opened anew all versions are others: none of before is taken for one of now.
        self._opened = secrets.token_hex(4)
        self._changes = 0

    def load(self) -> dict[str, StoredConnector]:
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        self._keep(self._connectors | {name: self._versioned(name, connector)})
        self._tell(name)

    def remove(self, name: str) -> None:
        if name in self._connectors:
            self._keep({key: value for key, value in self._connectors.items() if key != name})
            self._tell(name)

    def set_logger(self, namespace: str, level: str) -> None:
        if self._listener:
            self._listener.logger_changed(namespace, level)

    def listen(self, listener: StoreListener) -> None:
        self._listener = listener

    def close(self) -> None:
        pass

    def _versioned(self, name: str, connector: StoredConnector) -> StoredConnector:
        old = self._connectors.get(name)
        if old is not None and dict(old.config) == dict(connector.config):
            return replace(connector, version=old.version)
        self._changes += 1
        return replace(connector, version=f"{self._opened}-{self._changes}")

    def _keep(self, connectors: dict[str, StoredConnector]) -> None:
        self._connectors = connectors

    def _tell(self, name: str) -> None:
        if self._listener:
            self._listener.connector_changed(name)


class FileStore(MemoryStore):
    """One JSON file, replaced whole at every change, so that a crash leaves the old or the new one.

    A lock beside it keeps a second worker away: two workers with one state would run every job twice.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._lock = _locked(path)
        try:
            self._connectors = {name: self._versioned(name, one) for name, one in _read(path).items()}
        except PreconditionError:
            os.close(self._lock)
            raise

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _keep(self, connectors: dict[str, StoredConnector]) -> None:
        document = {
            "format": _FORMAT,
            "connectors": {
                name: {"config": dict(stored.config), "target_state": stored.target}
                for name, stored in connectors.items()
            },
        }
        try:
            _write_atomically(self._path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise PreconditionError(
                f"cannot write {self._path}: {error.strerror}; free or allow it"
            ) from error
        super()._keep(connectors)


def _locked(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PreconditionError(
            f"cannot write beside {path}: {error.strerror}; set icestream.state.file to a writable place"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise PreconditionError(
            f"another worker uses {path}; stop it, or give this one its own icestream.state.file"
        ) from None
    return lock


def _read(path: Path) -> dict[str, StoredConnector]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PreconditionError(f"cannot read {path}: {error.strerror}; check its owner and mode") from error
    try:
        document: Any = json.loads(text)
        if document["format"] != _FORMAT:
            raise PreconditionError(
                f"{path} has format {document['format']}, this version reads {_FORMAT}; update"
            )
        return {
            name: StoredConnector(dict(stored["config"]), TargetState(stored["target_state"]))
            for name, stored in document["connectors"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PreconditionError(
            f"{path} is not a worker's state file ({error}); repair or move it"
        ) from error


def _write_atomically(path: Path, text: str) -> None:
    # Secrets of connectors are in here: nobody but the owner may read it.
    temporary = Path(f"{path}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
