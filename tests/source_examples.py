"""A source connector of each kind with something to read, for the suites that all sources pass."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourcePlugin
from icestream.plugins import find_connector

_STRING = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"

Sent = tuple[bytes | None, bytes | None]
"""Key and value of a record in Kafka."""


def source_plugin(name: str) -> SourcePlugin:
    """The plugin of a source's class name."""
    plugin = find_connector(name).plugin
    assert isinstance(plugin, SourcePlugin)
    return plugin


class SourceExample(Protocol):
    tasks: int
    """How many it makes if it may."""

    @property
    def config(self) -> dict[str, str]: ...

    def grow(self) -> None:
        """There is more to read, for a source that is opened after this."""

    def expected(self) -> Mapping[str, list[Sent]]:
        """All records there are, in order, by the source partition that they are from, as JSON."""

    def ends(self) -> list[OffsetEntry]:
        """Where the source stands when it has read them."""

    def place_of(self, sent: Sent) -> str:
        """The source partition of a record."""

    def offset_of(self, place: str, count: int) -> OffsetEntry:
        """The offset after so many records of a partition."""


class FileExample:
    """FileStreamSource. The last line is unfinished until the file grows."""

    tasks = 1

    def __init__(self, folder: Path, topic: str) -> None:
        self._file = folder / f"{topic}.txt"
        self._topic = topic
        self._lines = [b"line %d" % number for number in range(3000)]
        self._file.write_bytes(b"\n".join(self._lines) + b"\nhalf of ")

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "FileStreamSource",
            "tasks.max": "2",
            "file": str(self._file),
            "topic": self._topic,
            "batch.size": "50",
            "value.converter": _STRING,
        }

    def grow(self) -> None:
        more = [b"half of a line", *(b"more %d" % number for number in range(1000))]
        self._lines += more
        with self._file.open("ab") as file:
            file.write((b"\n".join(more) + b"\n").removeprefix(b"half of "))

    def expected(self) -> dict[str, list[Sent]]:
        return {self.place_of((None, None)): [(None, line) for line in self._lines]}

    def ends(self) -> list[OffsetEntry]:
        return [self.offset_of("", len(self._lines))]

    def place_of(self, sent: Sent) -> str:
        return json.dumps({"filename": str(self._file)})

    def offset_of(self, place: str, count: int) -> OffsetEntry:
        position = sum(len(line) + 1 for line in self._lines[:count])
        return OffsetEntry({"filename": str(self._file)}, {"position": position})


class CounterExample:
    """The toy source of `tests/toys/counter`: keys, a schema, two tasks for three counters."""

    tasks = 2

    def __init__(self, folder: Path, topic: str, until: int = 450) -> None:
        self._topic = topic
        self._until = until

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "CounterSource",
            "tasks.max": "2",
            "topic": self._topic,
            "counters": "a,b,c",
            "until": str(self._until),
            "key.converter": _STRING,
            "value.converter": _JSON,
            "value.converter.schemas.enable": "false",
        }

    def grow(self) -> None:
        self._until += 250

    def expected(self) -> dict[str, list[Sent]]:
        return {
            json.dumps({"counter": name}): [
                (name.encode(), b'{"counter":"%s","number":%d}' % (name.encode(), number))
                for number in range(self._until)
            ]
            for name in "abc"
        }

    def ends(self) -> list[OffsetEntry]:
        return [self.offset_of(place, self._until) for place in self.expected()]

    def place_of(self, sent: Sent) -> str:
        return json.dumps({"counter": (sent[0] or b"").decode()})

    def offset_of(self, place: str, count: int) -> OffsetEntry:
        return OffsetEntry(json.loads(place), {"next": count})


class SqliteExample:
    """The JDBC source on a table of SQLite, read by its number. Some numbers are missing."""

    tasks = 1

    def __init__(self, folder: Path, topic: str) -> None:
        self._file = folder / f"{topic}.db"
        self._topic = topic
        self._names: dict[int, str] = {}
        with self._connection() as connection:
            connection.execute(
                f'CREATE TABLE "{topic}" (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL)'
            )
        self._add(700, "name")

    @property
    def config(self) -> dict[str, str]:
        return {
            "connector.class": "JdbcSource",
            "tasks.max": "2",
            "connection.url": f"jdbc:sqlite:{self._file}",
            "mode": "incrementing",
            "table.whitelist": self._topic,
            "topic.prefix": "",
            "batch.max.rows": "1",
            "poll.interval.ms": "100",
            "value.converter": _JSON,
            "value.converter.schemas.enable": "false",
        }

    def grow(self) -> None:
        self._add(300, "more")

    def expected(self) -> dict[str, list[Sent]]:
        rows = [(None, b'{"id":%d,"name":"%s"}' % (id_, name.encode())) for id_, name in self._names.items()]
        return {self.place_of((None, None)): rows}

    def ends(self) -> list[OffsetEntry]:
        return [self.offset_of("", len(self._names))]

    def place_of(self, sent: Sent) -> str:
        return json.dumps({"protocol": "1", "table": self._topic})

    def offset_of(self, place: str, count: int) -> OffsetEntry:
        partition = json.loads(self.place_of((None, None)))
        return OffsetEntry(partition, {"incrementing": list(self._names)[count - 1]})

    def _connection(self) -> contextlib.closing[sqlite3.Connection]:
        return contextlib.closing(sqlite3.connect(self._file, isolation_level=None))

    def _add(self, count: int, name: str) -> None:
        first = max(self._names, default=0) + 1
        rows = {id_: f"{name} {id_}" for id_ in range(first, first + count) if id_ % 7}
        with self._connection() as connection:
            connection.execute("BEGIN")
            connection.executemany(f'INSERT INTO "{self._topic}" VALUES (?, ?)', list(rows.items()))
            connection.execute("COMMIT")
        self._names |= rows


def by_place(example: SourceExample, records: Sequence[Sent]) -> dict[str, list[Sent]]:
    """Records by the source partition that they are from, in order."""
    found: dict[str, list[Sent]] = {}
    for sent in records:
        found.setdefault(example.place_of(sent), []).append(sent)
    return found


EXAMPLES: Mapping[str, Callable[[Path, str], SourceExample]] = {
    "file": FileExample,
    "counter": CounterExample,
    "jdbc": SqliteExample,
}
