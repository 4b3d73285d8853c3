"""Connectors of other packages are listed and validated like our own, in this process and in a worker's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from icestream.cluster.configs.reports import definition_of, report_from
from icestream.cluster.configs.validation import validate_connector
from icestream.cluster.connector_registry import task_configs
from icestream.cluster.stores.connector_store import StoredConnector
from icestream.plugins import connector_plugins

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON}
SINK = "com.example.JsonFolderSinkConnector"
SOURCE = "com.example.CounterSourceConnector"

pytestmark = pytest.mark.usefixtures("toys")


def test_they_are_listed() -> None:
    listed = {(one.class_name, one.kind, one.version) for one in connector_plugins()}
    assert {(SINK, "sink", "1.0"), (SOURCE, "source", "1.0")} <= listed


@pytest.mark.parametrize(("name", "key"), [(SINK, "folder"), ("CounterSource", "topic")])
def test_their_settings_are_told(name: str, key: str) -> None:
    told = [one.name for one in definition_of(name)]
    assert key in told
    assert "tasks.max" in told


def test_they_are_validated() -> None:
    report = report_from(validate_connector({"name": "x", "connector.class": SINK, "topics": "t"}, WORKER))
    (folder,) = [one for one in report.settings if one.name == "folder"]
    assert folder.errors == ('Missing required configuration "folder" which has no default value.',)
    source = {"name": "x", "connector.class": SOURCE, "topic": "numbers"}
    assert validate_connector(source, WORKER).problems == ()


def test_a_source_says_which_tasks_it_makes() -> None:
    config = {"name": "x", "connector.class": SOURCE, "topic": "t", "counters": "a,b,c", "tasks.max": "2"}
    tasks = task_configs("x", StoredConnector(config))
    assert [task["counters"] for task in tasks] == ["a,c", "b"]
    assert {task["task.class"] for task in tasks} == {"com.example.CounterSourceTask"}
    assert len(task_configs("x", StoredConnector({**config, "tasks.max": "9"}))) == 3
    broken = task_configs("x", StoredConnector({**config, "until": "no number"}))
    assert len(broken) == 1, "it fails when it starts, and says why"


def test_another_process_has_them_too() -> None:
    code = "from icestream.plugins import find_connector as f; print(f('JsonFolderSink').version)"
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert found.stdout.strip() == "1.0"
