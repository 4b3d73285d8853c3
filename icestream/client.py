"""A small client of Kafka Connect's REST API, the real one's and ours. Used by the CLI and the demo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from icestream.api.errors import (
    AlreadyExistsError,
    ConfigError,
    IcestreamError,
    NotFoundError,
    NotReadyError,
    PreconditionError,
    Problem,
)
from icestream.api.status import Progress


@dataclass(frozen=True)
class TaskView:
    id: int
    state: str
    worker_id: str
    trace: str | None


@dataclass(frozen=True)
class ConnectorView:
    """A connector's status; the progress is None when the worker is not ours."""

    name: str
    state: str
    worker_id: str
    trace: str | None
    tasks: tuple[TaskView, ...]
    progress: Progress | None = None


class ConnectClient:
    """One worker's API; every call raises one sentence when it fails."""

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        self.url = url.rstrip("/")
        # A proxy from the environment would be asked for 127.0.0.1 as well, and refuse.
        try:
            self._http = httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)
        except httpx.InvalidURL as error:
            raise PreconditionError(f"'{url}' is not an address ({error}); write http://host:port") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def server(self) -> dict[str, Any]:
        return dict(self._json("GET", "/"))

    def is_healthy(self) -> bool:
        """Whether the worker is up and ready; False also when nobody answers."""
        try:
            return self._http.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def names(self) -> list[str]:
        return list(self._json("GET", "/connectors"))

    def overview(self) -> list[ConnectorView]:
        """All connectors with status and, if the worker tells it, progress, by name."""
        expanded = self._json("GET", "/connectors", params={"expand": ["status", "progress"]})
        views = [
            _view(entry["status"], entry.get("progress")) for entry in expanded.values() if "status" in entry
        ]
        return sorted(views, key=lambda view: view.name)

    def status(self, name: str) -> ConnectorView:
        return _view(self._json("GET", f"{_path(name)}/status"), None)

    def info(self, name: str) -> dict[str, Any]:
        return dict(self._json("GET", _path(name)))

    def config(self, name: str) -> dict[str, str]:
        return dict(self._json("GET", f"{_path(name)}/config"))

    def create(
        self, name: str, config: Mapping[str, str], initial_state: str | None = None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        if initial_state:
            body["initial_state"] = initial_state
        return dict(self._json("POST", "/connectors", json=body))

    def put_config(self, name: str, config: Mapping[str, str]) -> dict[str, Any]:
        return dict(self._json("PUT", f"{_path(name)}/config", json=dict(config)))

    def validate(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        return dict(
            self._json(
                "PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", json=dict(config)
            )
        )

    def plugins(self) -> list[dict[str, str]]:
        return list(self._json("GET", "/connector-plugins"))

    def pause(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/pause")

    def resume(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/resume")

    def stop(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/stop")

    def restart(self, name: str, *, include_tasks: bool = True, only_failed: bool = False) -> None:
        flags = {"includeTasks": str(include_tasks).lower(), "onlyFailed": str(only_failed).lower()}
        self._call("POST", f"{_path(name)}/restart", params=flags)

    def delete(self, name: str) -> None:
        self._call("DELETE", _path(name))

    def _json(self, verb: str, path: str, **options: Any) -> Any:
        response = self._call(verb, path, **options)
        try:
            return response.json()
        except ValueError:
            raise IcestreamError(
                f"{self.url}{path} did not answer with JSON; is it Kafka Connect's REST API?"
            ) from None

    def _call(self, verb: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._http.request(verb, path, **options)
        except httpx.ConnectError:
            raise PreconditionError(
                f"no worker answers at {self.url}; start one with 'icestream standalone', or set --url"
            ) from None
        except httpx.TimeoutException:
            raise PreconditionError(f"{self.url} did not answer {verb} {path} in time; try again") from None
        except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise PreconditionError(f"cannot talk to {self.url} ({error}); check the address") from None
        if response.is_error:
            raise _error(response, verb)
        return response


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _error(response: httpx.Response, verb: str) -> IcestreamError:
    try:
        message = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = f"{response.request.url} answered {response.status_code} {response.reason_phrase}"
    if response.status_code == 400:
        return ConfigError([Problem("", message)])
    if response.status_code == 404:
        return NotFoundError(message)
    if response.status_code == 409:
        return AlreadyExistsError(message) if verb == "POST" else NotReadyError(message)
    return IcestreamError(message)


def _view(status: Mapping[str, Any], progress: Mapping[str, Any] | None) -> ConnectorView:
    connector = status["connector"]
    tasks = tuple(
        TaskView(task["id"], task["state"], task.get("worker_id", ""), task.get("trace"))
        for task in status["tasks"]
    )
    return ConnectorView(
        status["name"],
        connector["state"],
        connector.get("worker_id", ""),
        connector.get("trace"),
        tasks,
        _progress(progress) if progress is not None else None,
    )


def _progress(shape: Mapping[str, Any]) -> Progress:
    known = {key: value for key, value in shape.items() if key in Progress.__dataclass_fields__}
    return Progress(**{**known, "warnings": tuple(shape.get("warnings", ()))})
