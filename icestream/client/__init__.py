"""A small client of Kafka Connect's REST API, the real one's and ours. Used by the CLI, the demo and
the operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from icestream.api.errors import WorkerUnreachable
from icestream.client.views import ConnectorView, TaskView, view_of
from icestream.client.worker_http import Advice, Credentials, WorkerHttp

__all__ = ["Advice", "ConnectClient", "ConnectorView", "Credentials", "TaskView", "view_of"]


class ConnectClient:
    """One worker's API; every call raises one sentence when it fails."""

    def __init__(
        self,
        url: str,
        timeout: float = 30.0,
        credentials: Credentials | None = None,
        advice: Advice | None = None,
    ) -> None:
        self._worker = WorkerHttp(url, timeout, credentials or Credentials(), advice)
        self.url = self._worker.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left open between requests; here for the callers' `with`."""

    # The worker

    def server(self) -> dict[str, Any]:
        return self._worker.object("GET", "/")

    def is_healthy(self) -> bool:
        """Whether the worker is up and ready; False also when nobody answers."""
        try:
            return self._worker.exchange("GET", "/health").status == 200
        except WorkerUnreachable:
            return False

    def probe(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status of an answer for probes, and what it says."""
        answer = self._worker.exchange("GET", path)
        try:
            said = answer.json()
        except ValueError:
            said = {}
        return answer.status, said if isinstance(said, dict) else {}

    def loggers(self) -> dict[str, dict[str, Any]]:
        return self._worker.object("GET", "/admin/loggers")

    def logger(self, name: str) -> dict[str, Any]:
        return self._worker.object("GET", f"/admin/loggers/{quote(name, safe='')}")

    def set_logger(self, name: str, level: str, *, whole_cluster: bool = False) -> list[str]:
        """The names of the loggers that changed; none are told of a whole cluster."""
        scope = {"scope": "cluster" if whole_cluster else "worker"}
        changed = self._worker.json("PUT", f"/admin/loggers/{quote(name, safe='')}", scope, {"level": level})
        return changed if isinstance(changed, list) else []

    # Plugins

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, str]]:
        query = {} if connectors_only else {"connectorsOnly": "false"}
        return self._worker.array("GET", "/connector-plugins", query)

    def plugin_config(self, plugin: str) -> list[dict[str, Any]]:
        return self._worker.array("GET", f"{_plugin_path(plugin)}/config")

    def validate(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        return self._worker.object("PUT", f"{_plugin_path(plugin)}/config/validate", body=dict(config))

    # Connectors

    def names(self) -> list[str]:
        return self._worker.array("GET", "/connectors")

    def statuses(self) -> list[dict[str, Any]]:
        """All statuses by name, as Kafka Connect shows them; with `progress` if the worker tells it."""
        expanded = self._worker.object("GET", "/connectors", {"expand": ["status", "progress"]})
        found = [
            {**entry["status"], **({"progress": entry["progress"]} if "progress" in entry else {})}
            for entry in expanded.values()
            if isinstance(entry, dict) and "status" in entry
        ]
        return sorted(found, key=lambda status: str(status["name"]))

    def overview(self) -> list[ConnectorView]:
        """All connectors with status and, if the worker tells it, progress, by name."""
        return [view_of(status) for status in self.statuses()]

    def status(self, name: str) -> ConnectorView:
        return view_of(self.status_answer(name))

    def status_answer(self, name: str) -> dict[str, Any]:
        """The status as the worker gives it."""
        return self._worker.object("GET", f"{_path(name)}/status")

    def info(self, name: str) -> dict[str, Any]:
        return self._worker.object("GET", _path(name))

    def config(self, name: str) -> dict[str, str]:
        return self._worker.object("GET", f"{_path(name)}/config")

    def create(
        self, name: str, config: Mapping[str, str], initial_state: str | None = None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        if initial_state:
            body["initial_state"] = initial_state
        return self._worker.object("POST", "/connectors", body=body)

    def put_config(self, name: str, config: Mapping[str, str]) -> dict[str, Any]:
        return self._worker.object("PUT", f"{_path(name)}/config", body=dict(config))

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Change some keys; None removes one."""
        return self._worker.object("PATCH", f"{_path(name)}/config", body=dict(changes))

    def pause(self, name: str) -> None:
        self._worker.call("PUT", f"{_path(name)}/pause")

    def resume(self, name: str) -> None:
        self._worker.call("PUT", f"{_path(name)}/resume")

    def stop(self, name: str) -> None:
        self._worker.call("PUT", f"{_path(name)}/stop")

    def restart(self, name: str, *, include_tasks: bool = True, only_failed: bool = False) -> int | None:
        """How many parts (connector, tasks) are restarted; None if the worker does not tell."""
        flags = {"includeTasks": str(include_tasks).lower(), "onlyFailed": str(only_failed).lower()}
        plan = self._worker.json("POST", f"{_path(name)}/restart", flags)
        if not isinstance(plan, dict):
            return None
        parts = [plan.get("connector", {}), *plan.get("tasks", ())]
        return [part.get("state") for part in parts].count("RESTARTING")

    def restart_task(self, name: str, task: int) -> None:
        self._worker.call("POST", f"{_path(name)}/tasks/{task}/restart")

    def delete(self, name: str) -> None:
        self._worker.call("DELETE", _path(name))

    # Offsets and topics

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Entries of `partition` and `offset`."""
        return list(self._worker.object("GET", f"{_path(name)}/offsets").get("offsets", ()))

    def alter_offsets(self, name: str, entries: Iterable[Mapping[str, Any]]) -> str:
        """Set some offsets of a stopped connector; returns what the worker says."""
        body = {"offsets": [dict(entry) for entry in entries]}
        return str(self._worker.object("PATCH", f"{_path(name)}/offsets", body=body).get("message", ""))

    def reset_offsets(self, name: str) -> str:
        return str(self._worker.object("DELETE", f"{_path(name)}/offsets").get("message", ""))

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has really used."""
        return list(self._worker.object("GET", f"{_path(name)}/topics").get(name, {}).get("topics", ()))

    def reset_topics(self, name: str) -> None:
        self._worker.call("PUT", f"{_path(name)}/topics/reset")


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _plugin_path(plugin: str) -> str:
    return f"/connector-plugins/{quote(plugin, safe='')}"
