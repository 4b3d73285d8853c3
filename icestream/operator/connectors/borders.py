"""What a reconciliation of a connector needs from outside: workers' REST, the API server, the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol


class ConnectorRest(Protocol):
    """One cluster of workers; `icestream.client.ConnectClient` is one. Every call raises an IcestreamError:
    NotFoundError for 404, NotReadyError for 409, ConfigError for 400, WorkerUnreachable if nobody answers."""

    def names(self) -> list[str]: ...
    def config(self, name: str) -> dict[str, str]: ...
    def create(
        self, name: str, config: Mapping[str, str], initial_state: str | None = None
    ) -> dict[str, Any]: ...
    def put_config(self, name: str, config: Mapping[str, str]) -> dict[str, Any]: ...
    def delete(self, name: str) -> None: ...
    def status_answer(self, name: str) -> dict[str, Any]: ...
    def pause(self, name: str) -> None: ...
    def resume(self, name: str) -> None: ...
    def stop(self, name: str) -> None: ...
    def restart(self, name: str, *, include_tasks: bool = True, only_failed: bool = False) -> int | None: ...
    def restart_task(self, name: str, task: int) -> None: ...
    def topics(self, name: str) -> list[str]: ...
    def offsets(self, name: str) -> list[dict[str, Any]]: ...
    def alter_offsets(self, name: str, entries: Iterable[Mapping[str, Any]]) -> str: ...
    def reset_offsets(self, name: str) -> str: ...


class ConnectorObjects(Protocol):
    """One KafkaConnector in the API server, and the ConfigMaps of its namespace. Never from a cache: what a
    watch has told may be old. Every call raises an IcestreamError."""

    def annotation(self, name: str) -> str | None:
        """As it is now; None if it is gone, or the resource is another one of the same name."""

    def remove_annotation(self, name: str, value: str) -> None:
        """Unless it has another value meanwhile: that is a new wish."""

    def write_status(self, status: Mapping[str, Any]) -> None: ...

    def config_map_value(self, name: str, key: str) -> str | None:
        """None if the ConfigMap or the key is not there."""

    def write_config_map_value(self, name: str, key: str, text: str) -> None:
        """Makes the ConfigMap if need be, keeps its other keys, adds the connector as an owner."""


@dataclass(frozen=True)
class Timing:
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], None] = time.sleep
