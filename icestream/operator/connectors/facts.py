"""A KafkaConnector as the operator reads it, and what one reconciliation of it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

CLUSTER_LABEL: Final = "strimzi.io/cluster"
USE_CONNECTOR_RESOURCES: Final = "strimzi.io/use-connector-resources"
PAUSE_RECONCILIATION: Final = "strimzi.io/pause-reconciliation"
RESTART: Final = "strimzi.io/restart"
RESTART_TASK: Final = "strimzi.io/restart-task"
CONNECTOR_OFFSETS: Final = "strimzi.io/connector-offsets"


@dataclass(frozen=True)
class AutoRestart:
    """How often a failed connector was restarted in a row, and when last: `status.autoRestart`."""

    count: int
    last_restart: datetime


@dataclass(frozen=True)
class AutoRestartPolicy:
    most: int | None = None
    """None: for ever."""


@dataclass(frozen=True)
class SpecWarning:
    """Something in a spec that has no effect, or not the one that was meant."""

    reason: str
    message: str


@dataclass(frozen=True)
class ConnectorSpec:
    """What a KafkaConnector of either version asks for."""

    name: str
    config: Mapping[str, str]
    """Whole, as REST shows it: with `name`, `connector.class`, `tasks.max`, `connector.plugin.version`."""
    state: str = "running"
    tasks_max: int | None = None
    auto_restart: AutoRestartPolicy | None = None
    list_offsets_to: str | None = None
    """The name of a ConfigMap, as is the next."""
    alter_offsets_from: str | None = None
    warnings: tuple[SpecWarning, ...] = ()


@dataclass(frozen=True)
class ConnectorOutcome:
    """What the loop does next: write the status if it differs, look again after some seconds."""

    status: Mapping[str, Any] = field(default_factory=dict)
    requeue_after: float | None = None
    is_ready: bool = True
