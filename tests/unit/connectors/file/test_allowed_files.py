"""Kafka's file connectors: off unless the worker says otherwise, and only where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import Problem
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.plugins import find_connector

JSON = "org.apache.kafka.connect.json.JsonConverter"
ON = {"icestream.file.connectors.enabled": "true"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "t"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "topics": "t"}


def file_problems(connector: dict[str, str], worker: dict[str, str]) -> list[Problem]:
    return find_connector(connector["connector.class"]).plugin.not_allowed(connector, worker)


@pytest.mark.parametrize("connector", [SOURCE, SINK])
@pytest.mark.parametrize("worker", [{}, {"plugin.path": "/usr/share/java,/opt/my-connect-file.jar"}])
def test_they_are_off(connector: dict[str, str], worker: dict[str, str]) -> None:
    (problem,) = file_problems(connector, worker)
    assert problem.key == "connector.class"
    assert "is switched off" in problem.message


@pytest.mark.parametrize("connector", [SOURCE, SINK])
@pytest.mark.parametrize(
    "worker", [ON, {"plugin.path": "libs/connect-file-4.3.1.jar"}, {"plugin.path": "/a, /k/connect-file.jar"}]
)
def test_a_setting_or_the_jar_of_the_quickstart_switches_them_on(
    connector: dict[str, str], worker: dict[str, str]
) -> None:
    assert file_problems(connector, worker) == []


def test_the_jar_is_no_setting_without_effect() -> None:
    given = {"key.converter": JSON, "value.converter": JSON, "offset.storage.file.filename": "/tmp/o"}
    jar = parse_standalone({**given, "plugin.path": "libs/connect-file-4.3.1.jar"})
    assert not [warning for warning in jar.warnings if "plugin.path" in warning]


def test_other_connectors_are_not_looked_at() -> None:
    assert file_problems({"connector.class": "IcebergSink", "file": "/dev/zero"}, {}) == []


@pytest.mark.parametrize("connector", [SOURCE, SINK])
def test_only_files_of_the_folders_are_used(connector: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    worker = {**ON, "icestream.file.connectors.folders": f"/nowhere,{folder}"}
    allowed = {**connector, "file": str(folder / "new.txt")}
    assert file_problems(allowed, worker) == []
    plugin = find_connector(connector["connector.class"]).plugin
    assert plugin.settings.parse(allowed)["file"] == str(folder / "new.txt")
    assert file_problems(connector, worker) == []
    for path in ("/etc/passwd", f"{folder}/../secret", f"{folder}/link", f"{folder}-2/x"):
        (problem,) = file_problems({**connector, "file": path}, worker)
        assert "in none of the folders" in problem.message


def test_devices_are_no_files(tmp_path: Path) -> None:
    (problem,) = file_problems({**SOURCE, "file": "/dev/zero"}, ON)
    assert "is not a regular file" in problem.message
    (problem,) = file_problems({**SINK, "file": str(tmp_path)}, ON)
    assert "is a device or a folder" in problem.message
    assert file_problems({**SINK, "file": "/dev/null"}, ON) == []


@pytest.mark.parametrize(
    "name", [".out.txt.icestream", ".out.txt.icestream.tmp", ".out.txt.icestream.lock", "link"]
)
def test_no_sink_writes_into_the_journal_of_another(name: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / ".out.txt.icestream")
    (problem,) = file_problems({**SINK, "file": str(tmp_path / name)}, ON)
    assert problem.key == "file" and "is the name of a journal" in problem.message
