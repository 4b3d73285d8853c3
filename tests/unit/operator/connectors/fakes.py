"""Workers' REST and the API server, as the reconciliation of connectors sees them, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from icestream.api.errors import IcestreamError, NotFoundError, PreconditionError
from icestream.operator.connectors import ConnectorOutcome, RecentActions, Timing, reconcile_connector


class Workers:
    """A cluster that keeps what it is told. `refusals` are raised, one each, by calls of that name."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.states: dict[str, str] = {}
        self.tasks: dict[str, list[str]] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.done: list[tuple[Any, ...]] = []
        """The calls that were not refused."""
        self.refusals: dict[str, list[IcestreamError]] = {}
        self.offset_entries: list[dict[str, Any]] = []

    def _take(self, call: str, *rest: Any) -> None:
        self.calls.append((call, *rest))
        if self.refusals.get(call):
            raise self.refusals[call].pop(0)
        self.done.append((call, *rest))

    def _known(self, name: str) -> None:
        if name not in self.configs:
            raise NotFoundError(f"Connector {name} not found")

    def changes(self) -> list[tuple[Any, ...]]:
        """The calls that change something."""
        reading = ("names", "config", "status", "topics", "offsets")
        return [call for call in self.calls if call[0] not in reading]

    def names(self) -> list[str]:
        self._take("names")
        return list(self.configs)

    def config(self, name: str) -> dict[str, str]:
        self._take("config")
        self._known(name)
        return dict(self.configs[name])

    def create(
        self, name: str, config: Mapping[str, str], initial_state: str | None = None
    ) -> dict[str, Any]:
        self._take("create", initial_state)
        self.configs[name], self.states[name] = dict(config), initial_state or "RUNNING"
        self.tasks[name] = ["RUNNING"] if self.states[name] == "RUNNING" else []
        return {}

    def put_config(self, name: str, config: Mapping[str, str]) -> dict[str, Any]:
        self._take("put_config")
        self.configs[name] = dict(config)
        return {}

    def delete(self, name: str) -> None:
        self._take("delete", name)
        self._known(name)
        del self.configs[name]

    def status_answer(self, name: str) -> dict[str, Any]:
        self._take("status")
        self._known(name)
        tasks = [
            {"id": number, "state": state, "worker_id": "w:1"}
            for number, state in enumerate(self.tasks[name])
        ]
        connector = {"state": self.states[name], "worker_id": "w:1"}
        return {"name": name, "connector": connector, "tasks": tasks, "type": "sink"}

    def pause(self, name: str) -> None:
        self._take("pause")
        self.states[name] = "PAUSED"

    def resume(self, name: str) -> None:
        self._take("resume")
        self.states[name], self.tasks[name] = "RUNNING", ["RUNNING"]

    def stop(self, name: str) -> None:
        self._take("stop")
        self.states[name], self.tasks[name] = "STOPPED", []

    def restart(self, name: str, *, include_tasks: bool = True, only_failed: bool = False) -> int | None:
        self._take("restart", include_tasks, only_failed)
        return None

    def restart_task(self, name: str, task: int) -> None:
        self._take("restart_task", task)

    def topics(self, name: str) -> list[str]:
        self._take("topics")
        return ["b", "a"]

    def offsets(self, name: str) -> list[dict[str, Any]]:
        self._take("offsets")
        return self.offset_entries

    def alter_offsets(self, name: str, entries: Iterable[Mapping[str, Any]]) -> str:
        self._take("alter_offsets", list(entries))
        return ""

    def reset_offsets(self, name: str) -> str:
        self._take("reset_offsets")
        return ""


class ApiServer:
    """One KafkaConnector, and ConfigMaps. Calls that `failing` names fail."""

    def __init__(self, resource: dict[str, Any]) -> None:
        self.resource = resource
        self.config_maps: dict[str, dict[str, str]] = {}
        self.statuses: list[Mapping[str, Any]] = []
        self.failing: set[str] = set()

    def _take(self, call: str) -> None:
        if call in self.failing:
            raise PreconditionError("the API server does not answer; look at it")

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.resource["metadata"].setdefault("annotations", {})
        return found

    def annotation(self, name: str) -> str | None:
        self._take("annotation")
        return self.annotations.get(name)

    def remove_annotation(self, name: str, value: str) -> None:
        self._take("remove_annotation")
        if self.annotations.get(name) == value:
            del self.annotations[name]

    def write_status(self, status: Mapping[str, Any]) -> None:
        self._take("write_status")
        self.statuses.append(status)
        self.resource["status"] = dict(status)

    def config_map_value(self, name: str, key: str) -> str | None:
        self._take("config_map_value")
        return self.config_maps.get(name, {}).get(key)

    def write_config_map_value(self, name: str, key: str, text: str) -> None:
        self._take("write_config_map_value")
        self.config_maps.setdefault(name, {})[key] = text


class World:
    """A connector's resource, the workers, and an operator that takes turns."""

    def __init__(self, **spec: Any) -> None:
        metadata = {"name": "sink", "namespace": "ns", "uid": "u1", "generation": 1, "annotations": {}}
        self.api = ApiServer(
            {"metadata": metadata, "spec": {"class": "C", "tasksMax": 1, "config": {}, **spec}}
        )
        self.workers = Workers()
        self.recent = RecentActions()
        self.now = datetime(2026, 11, 18, 12, tzinfo=UTC)
        self.slept: list[float] = []

    @property
    def resource(self) -> dict[str, Any]:
        return self.api.resource

    @property
    def annotations(self) -> dict[str, str]:
        return self.api.annotations

    def turn(self, seen: Mapping[str, Any] | None = None) -> ConnectorOutcome:
        """As the loop does it: with the resource as a watch has told it, then the status is written."""
        timing = Timing(lambda: self.now, self.slept.append)
        outcome = reconcile_connector(seen or self.resource, self.workers, self.api, self.recent, timing)
        if "write_status" not in self.api.failing:
            self.api.write_status(outcome.status)
        return outcome

    def settled(self) -> World:
        self.turn()
        self.workers.calls.clear()
        return self

    def fail(self, *, connector: bool = False) -> None:
        self.workers.tasks["sink"] = ["FAILED"]
        if connector:
            self.workers.states["sink"] = "FAILED"

    def pass_minutes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


def conditions(outcome: ConnectorOutcome) -> list[tuple[str, str]]:
    return [(one["type"], one.get("reason", "")) for one in outcome.status["conditions"]]
