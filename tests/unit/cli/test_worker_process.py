"""What goes on in the background of a worker's process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import ClassVar

import pytest

from icestream.api.errors import ConfigError, Problem, SourceUnavailable
from icestream.cli import worker_process
from icestream.cli.worker_process import ClusterId


class Topics:
    """Kafka, as it answers: with an error, or with its id."""

    answers: ClassVar[list[Exception | str]] = []
    asked = threading.Event()
    go_on = threading.Event()

    def __init__(self, settings: Mapping[str, str]) -> None: ...

    def cluster_id(self) -> str:
        answer = Topics.answers.pop(0)
        Topics.asked.set()
        assert Topics.go_on.wait(60)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> type[Topics]:
    monkeypatch.setattr("icestream.kafka.topics.Topics", Topics)
    Topics.asked.clear()
    Topics.go_on.clear()
    return Topics


def test_the_cluster_id_is_asked_for_until_kafka_tells_it(
    kafka: type[Topics], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_CLUSTER_ID_EVERY", 0.0)
    refused = ConfigError([Problem("sasl.jaas.config", "Kafka refuses the login")])
    kafka.answers = [refused, SourceUnavailable("away"), "the-id"]
    kafka.go_on.set()
    asked = ClusterId({"bootstrap.servers": "localhost:9092"})
    assert asked() is None
    asked._ask()
    assert asked() == "the-id"
    assert kafka.answers == []


def test_a_worker_that_ends_asks_for_no_cluster_id_any_more(
    kafka: type[Topics], caplog: pytest.LogCaptureFixture
) -> None:
    kafka.answers = [SourceUnavailable("away"), "the-id"]
    asked = ClusterId({"bootstrap.servers": "localhost:9092"})
    asked.start()
    assert kafka.asked.wait(60)
    asked.stop()
    kafka.go_on.set()
    asked._thread.join(60)
    assert not asked._thread.is_alive()
    assert kafka.answers == ["the-id"]
    assert caplog.text == ""
