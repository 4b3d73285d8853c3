"""Statements to Trino over its HTTP API, as far as the stack needs them: for its steps and `stack sql`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from icestream.api.errors import IcestreamError, PreconditionError

_ASK_S: Final = 60.0
_PATIENCE_S: Final = 300.0
_BUSY: Final = (502, 503, 504)


@dataclass(frozen=True)
class Answer:
    """What one statement answered; no columns if it answers nothing."""

    statement: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class TrinoRefused(IcestreamError):
    """It answered, and did not like the statement."""


class Trino:
    def __init__(
        self,
        address: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = address
        self._host = urlsplit(address)
        self._clock = clock
        self._sleep = sleep

    def run(self, statement: str) -> Answer:
        """Run one statement to its end and return all its rows."""
        deadline = self._clock() + _PATIENCE_S
        said = self._ask("POST", "/v1/statement", statement.encode(), deadline)
        columns: tuple[str, ...] = ()
        rows: list[tuple[Any, ...]] = []
        while True:
            if error := said.get("error"):
                raise TrinoRefused(
                    f"Trino refused `{_shortened(statement)}`: {_first_line(error['message'])}"
                )
            columns = tuple(column["name"] for column in said.get("columns") or ()) or columns
            rows += map(tuple, said.get("data") or ())
            following = said.get("nextUri")
            if not following:
                return Answer(statement, columns, tuple(rows))
            # Only the path: it is this server that we ask, whatever it calls itself.
            said = self._ask("GET", urlsplit(following).path, None, deadline)

    def _ask(self, verb: str, path: str, body: bytes | None, deadline: float) -> dict[str, Any]:
        while True:
            status, text = self._exchange(verb, path, body)
            if status == 200:
                found: dict[str, Any] = json.loads(text)
                return found
            if status not in _BUSY or self._clock() > deadline:
                raise PreconditionError(f"{self._address} answers {status} to a statement; is that Trino?")
            self._sleep(0.2)

    def _exchange(self, verb: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = HTTPConnection(self._host.hostname or "", self._host.port or 80, timeout=_ASK_S)
        try:
            connection.request(verb, path, body, {"X-Trino-User": "icestream", "X-Trino-Source": "icestream"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise PreconditionError(
                f"Trino does not answer at {self._address} ({error}); see `icestream stack status`"
            ) from error
        finally:
            connection.close()


def quoted(text: str) -> str:
    """A string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _shortened(statement: str) -> str:
    # The first line only: what follows may hold a login.
    line = statement.strip().splitlines()[0] if statement.strip() else ""
    return line if len(line) <= 80 else f"{line[:77]}..."


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return " ".join(lines[:2]) if lines else "no reason given"
