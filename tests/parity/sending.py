"""Sends one request of the table to one side, and says what of the answer a client could notice."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from tests.parity.table import Request

_TIMEOUT_S: Final = 90.0
_NOTICED: Final = (
    "content-type",
    "location",
    "allow",
    "access-control-allow-origin",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-allow-credentials",
    "access-control-max-age",
)
_SETS: Final = frozenset(("allow", "access-control-allow-methods"))
# What is another at every run, or on either side by its nature.
_VOLATILE_TEXT: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "WORKER"),
    (re.compile(r"\n\tat .*", re.S), " STACK"),
)
_OUR_CLASSES: Final = (
    "io.aiven.",
    "io.confluent.",
    "io.debezium.",
    "io.icestream.",
    "io.tabular.iceberg.",
    "org.apache.iceberg.",
)
_OUR_KEYS: Final = ("icestream.", "value.schema.")
_OUR_GROUPS: Final = ("Icestream", "Validation")
_CONFIG_IN_WORDS: Final = re.compile(r"(?<=Connector config {)[^}]*")
_VOLATILE_KEYS: Final = ("kafka_cluster_id", "last_modified", "documentation")


@dataclass(frozen=True)
class Side:
    """A worker that answers at `port`."""

    name: str
    port: int
    folder: str
    wait_until_ready: Callable[[], None] = lambda: None
    jmx_port: int = 0
    """Where its MBeans can be read; 0: it has none."""


@dataclass(frozen=True)
class Answer:
    """What one side said, the volatile parts replaced."""

    status: int | tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def part(self, name: str) -> Any:
        """status, headers, or a key of the body."""
        return {"status": self.status, "headers": self.headers, "body": self.body}[name]


def send(side: Side, request: Request) -> Answer:
    if request.at_once == 1:
        return _send(side, request)
    with ThreadPoolExecutor(request.at_once) as pool:
        answers = list(pool.map(lambda _: _send(side, request), range(request.at_once)))
    return Answer(tuple(sorted({answer.status for answer in answers})))  # type: ignore[type-var]


def _send(side: Side, request: Request) -> Answer:
    body = _body(request, side.folder)
    headers = {"Connection": "close", "Host": f"127.0.0.1:{side.port}"}
    if body is not None and "Content-Type" not in request.headers:
        headers["Content-Type"] = "application/json"
    headers |= request.headers
    connection = http.client.HTTPConnection("127.0.0.1", side.port, timeout=_TIMEOUT_S)
    try:
        connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            if value != "":
                connection.putheader(name, value)
        if body is not None or request.method in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(len(body or b"")))
        connection.endheaders(body)
        response = connection.getresponse()
        return _answer(response.status, response.headers, response.read())
    except OSError as error:
        raise RuntimeError(f"{side.name} gave no answer to {request}: {error}") from error
    finally:
        connection.close()


def _body(request: Request, folder: str) -> bytes | None:
    if request.body is None or isinstance(request.body, bytes):
        return request.body
    text = request.body if isinstance(request.body, str) else json.dumps(request.body)
    return text.replace("@FOLDER@", folder).encode()


def _answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    noticed = {name: _steady_text(headers[name]) for name in _NOTICED if headers[name] is not None}
    for name in noticed.keys() & _SETS:
        noticed[name] = ",".join(sorted(noticed[name].split(",")))
    return Answer(status, noticed, _shown(body))


def _shown(body: bytes) -> Any:
    text = body.decode(errors="backslashreplace")
    try:
        return _steady(json.loads(text))
    except ValueError:
        return _steady_text(text)


def _steady(value: Any) -> Any:
    if isinstance(value, str):
        return _steady_text(value)
    if isinstance(value, list) and _are_offsets(value):
        return sorted((_steady(item) for item in value), key=json.dumps)
    if isinstance(value, list):
        return [_steady(item) for item in value if not _is_of_one_side(item)]
    if isinstance(value, dict):
        return {name: _steady_entry(name, value[name]) for name in _ordered(value)}
    return value


def _are_offsets(value: list[Any]) -> bool:
    """Listed in the order of a hash table."""
    return all(isinstance(item, dict) and set(item) == {"partition", "offset"} for item in value)


def _is_of_one_side(item: Any) -> bool:
    """Plugins and settings that only we have: this Kafka Connect has only Kafka's own."""
    if isinstance(item, str):
        return item in _OUR_GROUPS or item.startswith(_OUR_CLASSES)
    if not isinstance(item, dict):
        return False
    named = item.get("definition") or item
    return str(item.get("class")).startswith(_OUR_CLASSES) or str(named.get("name")).startswith(_OUR_KEYS)


def _steady_entry(name: str, value: Any) -> Any:
    return "VOLATILE" if name in _VOLATILE_KEYS and value is not None else _steady(value)


def _ordered(value: dict[str, Any]) -> list[str]:
    """Configs and expansions have the order of a hash table in Java; all else has an order to keep."""
    expansions = {"info", "status"}
    is_expanded = all(isinstance(one, dict) and set(one) <= expansions for one in value.values())
    is_unordered = "connector.class" in value or set(value) <= expansions or is_expanded
    return sorted(value) if is_unordered else list(value)


def _steady_text(text: str) -> str:
    text = _CONFIG_IN_WORDS.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)
    for pattern, name in _VOLATILE_TEXT:
        text = pattern.sub(name, text)
    return text
