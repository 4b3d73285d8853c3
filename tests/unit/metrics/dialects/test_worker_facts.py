"""What a worker tells of its connectors: from their configs, only what names classes or says what becomes of
errors."""

from __future__ import annotations

from icestream.api.history import PartitionLag
from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.connector_registry import KnownConnector
from icestream.cluster.service import LocalJob
from icestream.cluster.stores.connector_store import StoredConnector, TargetState
from icestream.metrics.dialects.facts import UsedClass
from icestream.metrics.dialects.worker_facts import FactsOfWorker
from icestream.plugins import find_connector
from tests.unit.metrics.dialects.examples import WORKER

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {
    "connector.class": "FileStreamSink",
    "topics": "t",
    "file": "/secret/place",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "a, b,a",
    "transforms.a.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.b.type": "org.example.Own",
    "predicates": "p",
    "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "errors.tolerance": "all",
}


def job(
    config: dict[str, str] | None = None,
    state: State = State.RUNNING,
    target: TargetState = TargetState.STARTED,
) -> LocalJob:
    given = config or CONFIG
    known = KnownConnector(
        StoredConnector(given, target), find_connector(given["connector.class"]), (), None, 1
    )
    lags = (PartitionLag("t", 0, 3, 5),)
    return LocalJob("c", known, JobStatus(state, progress=Progress(partitions=lags)))


def facts(*jobs: LocalJob) -> FactsOfWorker:
    return FactsOfWorker(lambda: jobs, {"key.converter": JSON, "value.converter": JSON}, WORKER)


def test_classes_are_told_with_their_versions() -> None:
    (told,) = facts(job()).connectors()

    assert told.connector == UsedClass("org.apache.kafka.connect.file.FileStreamSinkConnector", "4.3.1")
    assert told.task.name == "org.apache.kafka.connect.file.FileStreamSinkTask"
    assert (told.kind, told.tasks, told.state) == ("sink", 1, State.RUNNING)
    assert told.converters["key"] == UsedClass(JSON, "4.3.1")
    assert told.converters["value"].name.endswith("StringConverter")
    assert told.converters["header"].name.endswith("SimpleHeaderConverter")
    assert list(told.transforms) == ["a", "b"]
    assert told.transforms["a"].version == "4.3.1"
    assert told.transforms["b"] == UsedClass("org.example.Own", "unknown")
    assert told.predicates["p"].name.endswith("TopicNameMatches")
    assert (told.tolerates_all, told.logs_errors) == (True, False)
    assert [lag.lag for lag in told.lags] == [2]
    assert "/secret/place" not in repr(told)


def test_a_stopped_connector_has_no_tasks() -> None:
    (told,) = facts(job(state=State.STOPPED, target=TargetState.STOPPED)).connectors()

    assert (told.state, told.tasks) == (State.STOPPED, 0)


def test_a_config_is_looked_at_once_and_the_state_each_time() -> None:
    first, now = job(), [job()]
    now[0] = first
    asked = FactsOfWorker(lambda: now, {}, WORKER)
    (before,) = asked.connectors()
    now[0] = LocalJob("c", first.connector, JobStatus(State.PAUSED))
    (after,) = asked.connectors()

    assert after.connector is before.connector
    assert after.state is State.PAUSED
    now.clear()
    assert asked.connectors() == []
