"""Which manager a connector gets, and that Spark comes late."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.jobs import build
from icestream.jobs.sinks import build as build_sink
from icestream.plugins import sink_plugin


def test_file_connectors_start_without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_spark(self: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(build.LateSpark, "plane", no_spark)
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "none"), "topic": "t"}
    worker = {"bootstrap.servers": "127.0.0.1:1", "offset.storage.file.filename": str(tmp_path / "offsets")}
    build.manager_maker(worker)("source", config, lambda: None).close()


def test_spark_starts_at_once_for_a_worker_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(build.LateSpark, "plane", lambda spark: started.append(spark))
    build.manager_maker({"bootstrap.servers": "127.0.0.1:1"})
    assert not started
    build.manager_maker({"bootstrap.servers": "127.0.0.1:1", "spark.master": "local[2]"})
    assert len(started) == 1


class Cluster:
    """Kafka as an address shows it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    def cluster_id(self) -> str:
        return self.settings["bootstrap.servers"].partition(":")[0]


def test_events_are_published_to_the_cluster_of_the_topics_with_a_login_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`iceberg.kafka.*`: other brokers of the same cluster, but no other cluster."""
    monkeypatch.setattr(build_sink, "Topics", Cluster)
    worker = {"bootstrap.servers": "here:1"}
    topics: Any = Cluster(worker)
    plugin = sink_plugin("IcebergSink")

    def published(**config: str) -> Any:
        return build_sink._published_topics(plugin, config, worker, topics)

    assert published(**{"iceberg.kafka.linger.ms": "5"}) is topics
    same = published(**{"iceberg.kafka.bootstrap.servers": "here:2", "iceberg.kafka.linger.ms": "5"})
    assert same.settings["bootstrap.servers"] == "here:2"
    with pytest.raises(
        ConfigError, match=r"'iceberg\.kafka\.bootstrap\.servers' leads to another Kafka"
    ) as no:
        published(**{"iceberg.kafka.bootstrap.servers": "there:1"})
    assert no.value.problems[0].key == "iceberg.kafka.bootstrap.servers"


def test_a_job_with_a_process_of_its_own_needs_no_spark_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.LateSpark, "plane", lambda spark: pytest.fail("Spark was started"))
    worker = {
        "bootstrap.servers": "127.0.0.1:1",
        "spark.master": "local[2]",
        "icestream.job.manager": "process",
        "icestream.job.manager.processes.max": "1",
    }
    make = build.manager_maker(worker)
    config = {"connector.class": "IcebergSinkConnector"}
    first = make("first", config, lambda: None)
    with pytest.raises(SinkUnavailable, match=r"raise 'icestream\.job\.manager\.processes\.max'"):
        make("second", config, lambda: None)
    first.close()
    make("second", config, lambda: None).close()
