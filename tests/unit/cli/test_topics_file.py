"""`icestream topics-file …`, and the topics file of a worker: what is created, updated, left alone or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError, NotLeader, SourceUnavailable
from icestream.cli.topics_of_worker import apply_in_cluster, connectors_of_worker, worker_from_environment
from icestream.cluster.configs.properties import ConnectorFile
from icestream.cluster.settings.worker_config import parse_distributed, parse_standalone

Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is there: an attempt to reach it ends at once.
    monkeypatch.setenv("S3_ENDPOINT_URL", "http://127.0.0.1:9")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "application.yml"
    path.write_text(
        "connector:\n  topics:\n    users: {processing: {batch-size: 7}}\n    orders: {topic-name: o}\n"
    )
    return path


def test_show_prints_the_connectors(cli: Cli, file: Path) -> None:
    shown = json.loads(cli("topics-file", "show", str(file)).out)
    assert [one["name"] for one in shown] == ["users", "orders"]
    assert shown[0]["config"]["flush.size"] == "7"
    assert shown[1]["config"]["topics"] == "o"
    assert shown[1]["config"]["store.url"] == "http://127.0.0.1:9"


def test_apply_creates_updates_and_leaves_alone(cli: Cli, worker: Any, file: Path) -> None:
    ran = cli("topics-file", "apply", str(file), "--dry-run")
    assert "connector users created (dry run)" in ran.out
    assert "flush.size=7" in ran.out
    assert worker.service.names() == []
    ran = cli("topics-file", "apply", str(file))
    assert ran.out == "connector users created\nconnector orders created\n"
    assert worker.service.config("users")["flush.size"] == "7"
    file.write_text(file.read_text().replace("7", "8"))
    ran = cli("topics-file", "apply", str(file))
    assert ran.out == "connector users updated\nconnector orders unchanged\n"
    assert worker.service.config("users")["flush.size"] == "8"
    ran = cli("topics-file", "apply", str(file), "-o", "json")
    assert [one["result"] for one in json.loads(ran.out)] == ["unchanged", "unchanged"]


def test_a_bad_file_changes_nothing(cli: Cli, worker: Any, file: Path) -> None:
    file.write_text(file.read_text() + "    bad: {destination: {bucket: [1]}}\n")
    ran = cli("topics-file", "apply", str(file))
    assert ran.code == 1
    assert "connector.topics.bad.destination.bucket: it is no text" in ran.err
    assert worker.service.names() == []


def test_bad_variables_are_told(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_SIZE", "many")
    ran = cli("topics-file", "show", str(file))
    assert ran.code == 1
    assert "environment variable BATCH_SIZE" in ran.err


# A worker


def test_a_worker_without_a_file_is_what_the_environment_says(file: Path) -> None:
    environ = {"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092", "CONNECT_REST_PORT": "18083"}
    alone = worker_from_environment(file, environ, has_peers=False)
    assert alone["bootstrap.servers"] == "kafka:9092"
    assert alone["rest.port"] == "18083"
    config = parse_standalone(alone)
    assert config.state_file.name == "kafka-s3-connect-cluster.offsets.icestream.json"
    assert not [one for one in config.warnings if "no effect" in one]
    shared = parse_distributed(
        worker_from_environment(file, {**environ, "CONNECT_GROUP_ID": "prod"}, has_peers=True)
    )
    assert (shared.group, shared.config_topic, shared.status_topic) == ("prod", "prod-config", "prod-status")
    assert [one.name for one in connectors_of_worker(shared.raw)] == ["users", "orders"]


def test_a_workers_config_may_name_the_file(file: Path) -> None:
    assert len(connectors_of_worker({"icestream.topics.file": str(file)})) == 2
    assert connectors_of_worker({}) == []
    with pytest.raises(ConfigError, match="No such file"):
        connectors_of_worker({"icestream.topics.file": str(file) + "x"})


class Cluster:
    """A service that says what it is told to, first to last."""

    def __init__(self, *answers: Exception | str) -> None:
        self._answers = list(answers)
        self.taken: list[str] = []
        self.known: dict[str, dict[str, str]] = {}

    def take_up(self, file: ConnectorFile) -> str:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.taken.append(file.name)
        return answer

    def names(self) -> list[str]:
        return list(self.known)

    def config(self, name: str) -> dict[str, str]:
        return self.known[name]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icestream.cli.topics_of_worker._AGAIN_SECONDS", 0.001)


FILES = [ConnectorFile("a", {"x": "1"}), ConnectorFile("b", {"x": "2"})]


@pytest.mark.usefixtures("impatient")
def test_a_worker_of_a_cluster_tries_until_it_has_brought_them() -> None:
    cluster: Any = Cluster("created", SourceUnavailable("no broker"), NotLeader("http://other"), "updated")
    apply_in_cluster(cluster, FILES, threading.Event())
    assert cluster.taken == ["a", "b"]


@pytest.mark.usefixtures("impatient")
def test_what_the_leader_has_brought_is_not_brought_again() -> None:
    cluster: Any = Cluster(*[NotLeader("http://other")] * 4)
    cluster.known = {"a": {"x": "1"}, "b": {"x": "2"}}
    apply_in_cluster(cluster, FILES, threading.Event())
    assert cluster.taken == []


@pytest.mark.usefixtures("impatient")
def test_a_connector_that_is_refused_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    cluster: Any = Cluster(ConfigError([]), "created")
    apply_in_cluster(cluster, FILES, threading.Event())
    assert cluster.taken == ["b"]
    assert "connector a is left out" in caplog.text
