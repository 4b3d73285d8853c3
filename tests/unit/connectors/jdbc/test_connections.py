"""Connections are closed by those who opened them, also where something fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import FatalError
from icestream.connectors.jdbc.dialects.sqlite import Sqlite
from icestream.connectors.jdbc.sink.plugin import JdbcSinkPlugin
from icestream.connectors.jdbc.source.plugin import JdbcSourcePlugin
from icestream.jobs.sinks.target_commits import target_commits
from tests.open_files import times_open

SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "rows.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'one'), (2, 'two')")
        connection.commit()
    return file


def sink_config(database: Path) -> dict[str, str]:
    return {
        "name": "job",
        "connector.class": SINK,
        "topics": "events",
        "connection.url": f"jdbc:sqlite:{database}",
        "connection.attempts": "1",
    }


def source_config(database: Path) -> dict[str, str]:
    return {
        "name": "job",
        "connection.url": f"jdbc:sqlite:{database}",
        "connection.attempts": "1",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "p-",
    }


def use_sink(database: Path) -> None:
    with closing(JdbcSinkPlugin().open("job", sink_config(database))) as sink:
        sink.targets()[0].found()
        assert times_open(database) == 1


def use_source(database: Path) -> None:
    (task,) = JdbcSourcePlugin().tasks(source_config(database), 1)
    with closing(JdbcSourcePlugin().open(task)) as source:
        source.seek(())
        batch = source.read(1)
        assert batch is not None
        assert times_open(database) >= 1


def validate(database: Path) -> None:
    for plugin, config in (
        (JdbcSinkPlugin(), sink_config(database)),
        (JdbcSourcePlugin(), source_config(database)),
    ):
        for probe in plugin.probes(config, {}):
            assert probe.ask(probe) == []


def show_commits(database: Path) -> None:
    assert target_commits("job", sink_config(database), 10) == []


@pytest.mark.parametrize("use", [use_sink, use_source, validate, show_commits])
def test_nothing_stays_open_after_use(use: Callable[[Path], None], database: Path) -> None:
    for _ in range(20):
        use(database)
        assert times_open(database) == 0


def test_a_connection_that_cannot_be_prepared_is_closed(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []

    def refused(dialect: Sqlite, connection: Any) -> None:
        held.append(connection)
        raise sqlite3.DatabaseError("file is not a database")

    monkeypatch.setattr(Sqlite, "prepare", refused)
    with (
        closing(JdbcSinkPlugin().open("job", sink_config(database))) as sink,
        pytest.raises(FatalError, match="cannot prepare a connection"),
    ):
        sink.targets()[0].found()
    (connection,) = held
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")
