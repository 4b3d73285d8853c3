"""A small client of Kafka Connect's REST API, the real one's and ours. Used by the CLI and the demo.

It stands on `http.client`, because the command line has to start in a blink. Every request has a connection
of its own: a worker that was restarted meanwhile is no special case.
"""

from __future__ import annotations

import json
import re
import socket
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self
from urllib.parse import quote, unquote, urlencode, urlsplit

from icestream.api.errors import (
    AlreadyExistsError,
    ConfigError,
    IcestreamError,
    NotFoundError,
    NotReadyError,
    PreconditionError,
    Problem,
    WorkerUnreachable,
)
from icestream.api.status import Progress

if TYPE_CHECKING:
    from ssl import SSLContext

_CHANGE_TIMEOUT: Final = 100.0
"""A worker gives up on a request after 90 s; its answer says more than our impatience."""
_CONNECT_TIMEOUT: Final = 10.0
_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_INVALID_CONFIG: Final = "Connector configuration is invalid"

Query = Mapping[str, str | Sequence[str]]


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
    type: str = ""


@dataclass(frozen=True)
class Credentials:
    """How to prove who we are, and how the worker has to."""

    user: str | None = None
    """`name:password`, for basic authentication."""
    cacert: str | None = None
    """A PEM file with the authorities to trust, instead of the system's."""
    is_insecure: bool = False
    """Take any certificate."""

    def __repr__(self) -> str:
        return f"Credentials(user={self.user and '[hidden]'!r}, cacert={self.cacert!r})"


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    body: bytes
    location: str | None

    def json(self) -> Any:
        return json.loads(self.body)


class ConnectClient:
    """One worker's API; every call raises one sentence when it fails."""

    def __init__(self, url: str, timeout: float = 30.0, credentials: Credentials | None = None) -> None:
        self._address = _Address.parse(url)
        self.url = self._address.url
        self._timeout = timeout
        self._credentials = credentials or Credentials()
        self._tls: SSLContext | None = None

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
        return self._object("GET", "/")

    def is_healthy(self) -> bool:
        """Whether the worker is up and ready; False also when nobody answers."""
        try:
            return self._exchange("GET", "/health").status == 200
        except WorkerUnreachable:
            return False

    def loggers(self) -> dict[str, dict[str, Any]]:
        return self._object("GET", "/admin/loggers")

    def logger(self, name: str) -> dict[str, Any]:
        return self._object("GET", f"/admin/loggers/{quote(name, safe='')}")

    def set_logger(self, name: str, level: str, *, whole_cluster: bool = False) -> list[str]:
        """The names of the loggers that changed; none are told of a whole cluster."""
        scope = {"scope": "cluster" if whole_cluster else "worker"}
        changed = self._json("PUT", f"/admin/loggers/{quote(name, safe='')}", scope, {"level": level})
        return changed if isinstance(changed, list) else []

    # Plugins

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, str]]:
        query = {} if connectors_only else {"connectorsOnly": "false"}
        return self._array("GET", "/connector-plugins", query)

    def plugin_config(self, plugin: str) -> list[dict[str, Any]]:
        return self._array("GET", f"{_plugin_path(plugin)}/config")

    def validate(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        return self._object("PUT", f"{_plugin_path(plugin)}/config/validate", body=dict(config))

    # Connectors

    def names(self) -> list[str]:
        return self._array("GET", "/connectors")

    def statuses(self) -> list[dict[str, Any]]:
        """All statuses by name, as Kafka Connect shows them; with `progress` if the worker tells it."""
        expanded = self._object("GET", "/connectors", {"expand": ["status", "progress"]})
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
        return view_of(self._object("GET", f"{_path(name)}/status"))

    def info(self, name: str) -> dict[str, Any]:
        return self._object("GET", _path(name))

    def config(self, name: str) -> dict[str, str]:
        return self._object("GET", f"{_path(name)}/config")

    def create(
        self, name: str, config: Mapping[str, str], initial_state: str | None = None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        if initial_state:
            body["initial_state"] = initial_state
        return self._object("POST", "/connectors", body=body)

    def put_config(self, name: str, config: Mapping[str, str]) -> dict[str, Any]:
        return self._object("PUT", f"{_path(name)}/config", body=dict(config))

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Change some keys; None removes one."""
        return self._object("PATCH", f"{_path(name)}/config", body=dict(changes))

    def pause(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/pause")

    def resume(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/resume")

    def stop(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/stop")

    def restart(self, name: str, *, include_tasks: bool = True, only_failed: bool = False) -> int | None:
        """How many parts (connector, tasks) are restarted; None if the worker does not tell."""
        flags = {"includeTasks": str(include_tasks).lower(), "onlyFailed": str(only_failed).lower()}
        plan = self._json("POST", f"{_path(name)}/restart", flags)
        if not isinstance(plan, dict):
            return None
        parts = [plan.get("connector", {}), *plan.get("tasks", ())]
        return [part.get("state") for part in parts].count("RESTARTING")

    def delete(self, name: str) -> None:
        self._call("DELETE", _path(name))

    # Offsets and topics

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Entries of `partition` and `offset`."""
        return list(self._object("GET", f"{_path(name)}/offsets").get("offsets", ()))

    def alter_offsets(self, name: str, entries: Iterable[Mapping[str, Any]]) -> str:
        """Set some offsets of a stopped connector; returns what the worker says."""
        body = {"offsets": [dict(entry) for entry in entries]}
        return str(self._object("PATCH", f"{_path(name)}/offsets", body=body).get("message", ""))

    def reset_offsets(self, name: str) -> str:
        return str(self._object("DELETE", f"{_path(name)}/offsets").get("message", ""))

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has really used."""
        return list(self._object("GET", f"{_path(name)}/topics").get(name, {}).get("topics", ()))

    def reset_topics(self, name: str) -> None:
        self._call("PUT", f"{_path(name)}/topics/reset")

    # How

    def _json(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> Any:
        try:
            return self._call(verb, path, query, body).json()
        except (ValueError, RecursionError):
            return None

    def _object(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> dict[str, Any]:
        found = self._json(verb, path, query, body)
        return found if isinstance(found, dict) else self._strange(path)

    def _array(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> list[Any]:
        found = self._json(verb, path, query, body)
        return found if isinstance(found, list) else self._strange(path)

    def _strange(self, path: str) -> NoReturn:
        raise IcestreamError(
            f"{self.url}{path} does not answer as Kafka Connect does; set --url to a worker's REST address"
        )

    def _call(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> _Answer:
        answer = self._exchange(verb, path, query, body)
        if answer.status >= 300:
            raise self._refusal(answer, path)
        return answer

    def _exchange(self, verb: str, path: str, query: Query | None = None, body: Any = None) -> _Answer:
        target = self._address.prefix + path + (f"?{urlencode(query, doseq=True)}" if query else "")
        connection = self._open()
        patience = self._timeout if verb == "GET" else max(self._timeout, _CHANGE_TIMEOUT)
        try:
            connection.connect()
            connection.sock.settimeout(patience)
            connection.request(verb, target, *self._content(body))
            return _read(connection.getresponse())
        except TimeoutError:
            raise WorkerUnreachable(f"{self.url} did not answer {verb} {path} in time; try again") from None
        except (OSError, HTTPException, UnicodeError) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _open(self) -> HTTPConnection:
        patience = min(self._timeout, _CONNECT_TIMEOUT)
        if not self._address.is_tls:
            return HTTPConnection(self._address.host, self._address.port, timeout=patience)
        if self._tls is None:
            self._tls = _tls_context(self._credentials)
        return HTTPSConnection(self._address.host, self._address.port, timeout=patience, context=self._tls)

    def _content(self, body: Any) -> tuple[bytes | None, dict[str, str]]:
        headers = {"Accept": "application/json", "Connection": "close"}
        user = self._credentials.user or self._address.user
        if user:
            headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        if body is None:
            return None, headers
        return json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}

    def _unreachable(self, error: Exception) -> WorkerUnreachable:
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            return WorkerUnreachable(
                f"the certificate of {self.url} is not trusted ({error.verify_message}); "
                "name its authority with --cacert"
            )
        if isinstance(error, ConnectionRefusedError):
            return WorkerUnreachable(
                f"no worker answers at {self.url}; start one with 'icestream standalone', or set --url"
            )
        if isinstance(error, socket.gaierror):
            return WorkerUnreachable(f"cannot find the host '{self._address.host}'; check the address")
        return WorkerUnreachable(f"cannot talk to {self.url} ({_reason(error)}); check the address")

    def _refusal(self, answer: _Answer, path: str) -> IcestreamError:
        try:
            message = str(answer.json()["message"])
        except (ValueError, KeyError, TypeError):
            message = f"{self.url}{path} answered {answer.status} {answer.reason}"
        if answer.status < 400:
            return PreconditionError(f"{self.url} sends us to {answer.location}; set --url to that")
        if answer.status == 401:
            return PreconditionError(f"{self.url} wants another user name or password; set --user")
        if answer.status == 400:
            return ConfigError(_problems(message))
        if answer.status == 404 and message.startswith("HTTP 404"):
            return NotFoundError(f"{self.url}{path} does not exist; is the worker older than this command?")
        if answer.status == 404:
            return NotFoundError(message)
        if answer.status == 409:
            return (
                AlreadyExistsError(message) if message.endswith("already exists") else NotReadyError(message)
            )
        return IcestreamError(message)


@dataclass(frozen=True)
class _Address:
    host: str
    port: int
    is_tls: bool
    prefix: str
    user: str | None

    @classmethod
    def parse(cls, url: str) -> _Address:
        text = url.strip()
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            is_tls = parts.scheme == "https"
            port = parts.port or (443 if is_tls else 80)
        except ValueError as error:
            raise PreconditionError(
                f"'{_without_user(url)}' is not an address ({error}); write http://host:port"
            ) from None
        is_plain = parts.hostname and not _BLANK.search(parts.netloc + parts.path)
        if parts.scheme not in ("http", "https") or not is_plain or parts.query or parts.fragment:
            raise PreconditionError(f"'{_without_user(url)}' is not an address; write http://host:port")
        assert parts.hostname
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else None
        return cls(parts.hostname, port, is_tls, parts.path.rstrip("/"), user)

    @property
    def url(self) -> str:
        """The address without the password that it may have come with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme, usual = ("https", 443) if self.is_tls else ("http", 80)
        port = "" if self.port == usual else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}"


def _without_user(url: str) -> str:
    """An address that may be shown: a password may be in it."""
    return re.sub(r"(^|//).*@", r"\1[hidden]@", url)


def _tls_context(credentials: Credentials) -> SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=credentials.cacert)
    except OSError as error:
        raise PreconditionError(
            f"'{credentials.cacert}' has no certificates ({error.strerror or error}); name a PEM file"
        ) from None
    if credentials.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _read(response: HTTPResponse) -> _Answer:
    return _Answer(response.status, response.reason, response.read(), response.getheader("Location"))


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())


def _path(name: str) -> str:
    return f"/connectors/{quote(name, safe='')}"


def _plugin_path(plugin: str) -> str:
    return f"/connector-plugins/{quote(plugin, safe='')}"


def _problems(message: str) -> list[Problem]:
    """The errors of a refused config, without the frame that Kafka Connect puts around them."""
    first, *lines = message.splitlines() or [""]
    if not first.startswith(_INVALID_CONFIG) or len(lines) < 2:
        return [Problem("", message)]
    return [Problem("", line) for line in lines[:-1]]


def view_of(status: Mapping[str, Any]) -> ConnectorView:
    """A status in Kafka Connect's shape, with or without `progress`."""
    try:
        return _view_of(status)
    except (KeyError, TypeError, AttributeError):
        raise IcestreamError(
            "a status is not as Kafka Connect's are; set --url to a worker's REST address"
        ) from None


def _view_of(status: Mapping[str, Any]) -> ConnectorView:
    connector = status["connector"]
    tasks = tuple(
        TaskView(task["id"], task["state"], task.get("worker_id", ""), task.get("trace"))
        for task in status["tasks"]
    )
    progress = status.get("progress")
    return ConnectorView(
        status["name"],
        connector["state"],
        connector.get("worker_id", ""),
        connector.get("trace"),
        tasks,
        _progress(progress) if progress is not None else None,
        status.get("type", ""),
    )


def _progress(shape: Mapping[str, Any]) -> Progress:
    known = {key: value for key, value in shape.items() if key in Progress.__dataclass_fields__}
    for name in ("warnings", "topics"):
        known[name] = tuple(shape.get(name, ()))
    return Progress(**known)
