"""Where a job runs, by the configs of connector and worker."""

from __future__ import annotations

import pytest

from icestream.api.connector_settings import CONNECTOR
from icestream.api.errors import ConfigError
from icestream.jobs.processes.job_place import JobPlace, job_place, job_place_problems, processes_allowed
from icestream.jobs.processes.process_manager import job_order
from icestream.plugins import find_connector

SINK = find_connector("IcebergSinkConnector").plugin
FILE_SINK = find_connector("FileStreamSink").plugin
SOURCE = find_connector("FileStreamSource").plugin
PROCESS = {"icestream.job.manager": "process"}
CLUSTER = {"group.id": "g", **PROCESS}


def test_a_job_runs_in_the_worker_unless_somebody_says_otherwise() -> None:
    assert job_place(SINK, {}, {}) == JobPlace()
    assert job_place(SINK, PROCESS, {}).has_process
    assert job_place(SINK, {}, PROCESS).has_process
    assert not job_place(SINK, {"icestream.job.manager": "thread"}, PROCESS).has_process


def test_the_connector_s_word_on_memory_and_heartbeat_is_before_the_worker_s() -> None:
    worker = {
        "icestream.job.manager.driver.memory": "1g",
        "icestream.job.manager.heartbeat.timeout.ms": "5000",
    }
    assert job_place(SINK, PROCESS, worker) == JobPlace(True, "1g", 5.0)
    assert job_place(SINK, {"icestream.job.manager.driver.memory": "3g"}, worker).driver_memory == "3g"


@pytest.mark.parametrize(("plugin", "worker"), [(FILE_SINK, CLUSTER), (SOURCE, PROCESS)])
def test_what_cannot_have_a_process_runs_in_a_thread_or_is_refused(plugin: object, worker: object) -> None:
    assert not job_place(plugin, {}, worker).has_process  # type: ignore[arg-type]
    (problem,) = job_place_problems(plugin, PROCESS, worker)  # type: ignore[arg-type]
    assert "'icestream.job.manager=process' is not possible" in problem.message
    assert job_place_problems(plugin, {}, worker) == []  # type: ignore[arg-type]


def test_a_source_of_a_cluster_may_have_a_process() -> None:
    assert job_place(SOURCE, {}, CLUSTER).has_process


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("icestream.job.manager", "kubernetes", "made by the operator"),
        ("icestream.job.manager", "pod", "one of: thread, process"),
        ("icestream.job.manager.driver.memory", "much", "such as 512m or 2g"),
        ("icestream.job.manager.heartbeat.timeout.ms", "10", "at least 1000"),
    ],
)
def test_a_wrong_value_is_refused(key: str, value: str, said: str) -> None:
    config = {"name": "n", "connector.class": "c", key: value}
    (problem,) = CONNECTOR.problems(config)
    assert problem.key == key and said in problem.message
    with pytest.raises(ConfigError):
        job_place(SINK, {key: value}, {})


def test_a_connector_asks_for_no_more_memory_than_the_worker_allows() -> None:
    asked = {"icestream.job.manager.driver.memory": "9g"}
    (problem,) = job_place_problems(SINK, asked, {})
    assert "set at most 8g" in problem.message
    assert job_place_problems(SINK, asked, {"icestream.job.manager.driver.memory.max": "16g"}) == []
    assert job_place_problems(SINK, {"icestream.job.manager.driver.memory": "8192m"}, {}) == []


def test_how_many_processes_a_worker_allows() -> None:
    assert processes_allowed({}) == 16
    assert processes_allowed({"icestream.job.manager.processes.max": "2"}) == 2


def test_a_process_gets_what_its_job_needs_and_nothing_of_rest() -> None:
    worker = {
        "bootstrap.servers": "k:9092",
        "sasl.jaas.config": "needed",
        "spark.driver.memory": "1g",
        "spark.master": "local[2]",
        "listeners": "https://:8083",
        "listeners.https.ssl.keystore.password": "not needed",
        "rest.extension.classes": "x",
        "config.providers.file.class": "x",
        "admin.request.timeout.ms": "1",
        **PROCESS,
    }
    order = job_order("n", SINK, {"topics": "t", **PROCESS}, worker, JobPlace(True, "3g"))
    assert order.config == {"topics": "t"}
    assert order.worker == {
        "bootstrap.servers": "k:9092",
        "sasl.jaas.config": "needed",
        "spark.driver.memory": "3g",
        "spark.master": "local[2]",
        "admin.request.timeout.ms": "1",
    }
    assert "needed" not in repr(order)
    without_spark = job_order("n", SOURCE, {}, worker, JobPlace(True, "3g"))
    assert not any(key.startswith("spark.") for key in without_spark.worker)
