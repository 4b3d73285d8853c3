"""Where a worker keeps its connectors and their target states: file or memory. Used by the service."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class StoredConnector:
    config: Mapping[str, str]
    target: TargetState = TargetState.STARTED


class ConnectorStore(Protocol):
    """Connectors by name. What `put` and `remove` return from is durable, if the store is."""

    def load(self) -> dict[str, StoredConnector]: ...

    def put(self, name: str, connector: StoredConnector) -> None: ...

    def remove(self, name: str) -> None: ...

    def close(self) -> None: ...


class MemoryStore:
    def __init__(self) -> None:
        self._connectors: dict[str, StoredConnector] = {}

    def load(self) -> dict[str, StoredConnector]:
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        self._connectors[name] = connector

    def remove(self, name: str) -> None:
        self._connectors.pop(name, None)

    def close(self) -> None:
        pass


class FileStore:
    """One JSON file, replaced whole at every change, so that a crash leaves the old or the new one.

    A lock beside it keeps a second worker away: two workers with one state would run every job twice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = _locked(path)
        try:
            self._connectors = _read(path)
        except PreconditionError:
            os.close(self._lock)
            raise

    def load(self) -> dict[str, StoredConnector]:
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        self._replace(self._connectors | {name: connector})

    def remove(self, name: str) -> None:
        if name in self._connectors:
            self._replace({key: value for key, value in self._connectors.items() if key != name})

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _replace(self, connectors: dict[str, StoredConnector]) -> None:
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
        self._connectors = connectors


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
