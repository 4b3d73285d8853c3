"""`/actuator/health`: what a worker needs, as components of Spring Boot's health, and the two groups that
probes ask for.

Liveness and readiness are those of `/live` and `/ready`: Kafka, destinations, Spark and disk count in
neither.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import NotFoundError
from icestream.cluster.configs.masking import Masks
from icestream.cluster.liveness import Checked
from icestream.cluster.service import ConnectorService

_DISK_THRESHOLD: Final = 10 * 2**20
"""Spring's: 10 MiB."""
GROUPS: Final[Mapping[str, str]] = {"liveness": "livenessState", "readiness": "readinessState"}


class Status(StrEnum):
    """From the worst; the first that a component has is the whole's."""

    DOWN = "DOWN"
    OUT_OF_SERVICE = "OUT_OF_SERVICE"
    UP = "UP"
    UNKNOWN = "UNKNOWN"

    @property
    def code(self) -> int:
        return 503 if self in (Status.DOWN, Status.OUT_OF_SERVICE) else 200


@dataclass(frozen=True)
class Health:
    """A component with details, or one that has components."""

    own: Status = Status.UNKNOWN
    details: Mapping[str, Any] = field(default_factory=dict)
    components: Mapping[str, Health] | None = None

    @property
    def status(self) -> Status:
        if self.components is None:
            return self.own
        found = {one.status for one in self.components.values()}
        return next((status for status in Status if status in found), Status.UNKNOWN)

    def shown(self) -> dict[str, Any]:
        said: dict[str, Any] = {"status": self.status.value}
        if self.components is not None:
            said["components"] = {name: one.shown() for name, one in self.components.items()}
        if self.details:
            said["details"] = dict(self.details)
        return said

    def at(self, path: Sequence[str]) -> Health | None:
        """The part of this name, or deeper; None if there is none."""
        if not path:
            return self
        part = (self.components or {}).get(path[0])
        return part.at(path[1:]) if part is not None else None


@dataclass(frozen=True)
class WorkerHealth:
    """Asked at every request, in a thread."""

    service: ConnectorService
    loop_age: Callable[[], float | None]
    kafka: Callable[[], Health]
    folder: str
    """Whose disk is looked at."""
    shows_details: bool

    def answer(self, path: Sequence[str]) -> tuple[int, dict[str, Any]] | None:
        """The status code and the body; None: there is no such part, or it is not shown."""
        if len(path) == 1 and path[0] in GROUPS:
            return self._group(GROUPS[path[0]])
        if path and not self.shows_details:
            return None
        whole = Health(components=self._components())
        part = whole.at(path)
        if part is None:
            return None
        said = part.shown() if self.shows_details else {"status": part.status.value}
        return part.status.code, said if path else {**said, "groups": sorted(GROUPS)}

    def _group(self, name: str) -> tuple[int, dict[str, Any]]:
        component = self._live() if name == "livenessState" else self._ready()
        said: dict[str, Any] = {"status": component.status.value}
        if self.shows_details:
            said["components"] = {name: component.shown()}
        return component.status.code, said

    def _components(self) -> dict[str, Health]:
        return {
            "destinations": self._destinations(),
            "diskSpace": disk_space(self.folder),
            "kafka": self.kafka(),
            "livenessState": self._live(),
            "ping": Health(Status.UP),
            "readinessState": self._ready(),
            "spark": self._spark(),
        }

    def _live(self) -> Health:
        return _state(self.service.live(self.loop_age()), Status.DOWN)

    def _ready(self) -> Health:
        return _state(self.service.readiness(), Status.OUT_OF_SERVICE)

    def _spark(self) -> Health:
        outage = self.service.outage()
        if outage is None:
            return Health(Status.UP)
        since = outage.since.isoformat(timespec="seconds")
        return Health(Status.DOWN, {"since": since, "message": outage.reason})

    def _destinations(self) -> Health:
        """Those that connectors of this worker write to or read from, by their circuit breakers."""
        found: dict[str, Health] = {}
        for job in self.service.local_jobs():
            circuit = job.status.progress.circuit or {}
            name = str(circuit.get("destination") or "")
            if name:
                # Deleted meanwhile, it is not told of.
                with contextlib.suppress(NotFoundError):
                    found[name] = _destination(circuit, self.service.masks(job.name))
        return Health(components=found) if found else Health(Status.UP, {"message": "no connector has one"})


def _state(checked: Checked, otherwise: Status) -> Health:
    return Health(Status.UP if checked.is_well else otherwise, {"message": checked.message})


def _destination(circuit: Mapping[str, Any], masks: Masks) -> Health:
    state = str(circuit.get("state", ""))
    told = {key: circuit[key] for key in ("state", "since", "until", "reason") if circuit.get(key)}
    if "reason" in told:
        told["reason"] = masks.text(str(told["reason"]))
    return Health(Status.UP if state == "closed" else Status.DOWN, told)


def disk_space(folder: str) -> Health:
    place = str(Path(folder).absolute())
    try:
        usage = shutil.disk_usage(place)
    except OSError:
        return Health(Status.DOWN, {"path": place, "exists": False, "threshold": _DISK_THRESHOLD})
    details = {"total": usage.total, "free": usage.free, "threshold": _DISK_THRESHOLD}
    status = Status.UP if usage.free >= _DISK_THRESHOLD else Status.DOWN
    return Health(status, {**details, "path": place, "exists": True})
