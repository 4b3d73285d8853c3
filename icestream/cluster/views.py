"""What the service answers: plain facts that REST turns into Kafka Connect's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icestream.api.config import Setting
from icestream.api.status import State


@dataclass(frozen=True)
class ConnectorInfo:
    name: str
    config: Mapping[str, str]
    task_ids: tuple[int, ...]
    type: str


@dataclass(frozen=True)
class TaskStatus:
    id: int
    state: State
    worker_id: str
    version: str
    trace: str | None = None


@dataclass(frozen=True)
class ConnectorStatus:
    name: str
    state: State
    worker_id: str
    version: str
    tasks: tuple[TaskStatus, ...]
    type: str
    trace: str | None = None


@dataclass(frozen=True)
class TaskConfig:
    connector: str
    task: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class Health:
    """healthy or starting, in words."""

    status: str
    message: str


@dataclass(frozen=True)
class ServerInfo:
    version: str
    commit: str
    kafka_cluster_id: str | None


@dataclass(frozen=True)
class CheckedSetting:
    """One key of a validated config; no definition: nobody knows this key."""

    name: str
    definition: Setting | None
    value: str | None
    recommended: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    is_visible: bool = True


@dataclass(frozen=True)
class ConfigReport:
    """The answer to `validate`."""

    name: str
    settings: tuple[CheckedSetting, ...]
    warnings: tuple[str, ...]

    @property
    def error_count(self) -> int:
        return sum(len(setting.errors) for setting in self.settings)

    @property
    def groups(self) -> list[str]:
        found = (setting.definition.group for setting in self.settings if setting.definition)
        return list(dict.fromkeys(group for group in found if group is not None))
