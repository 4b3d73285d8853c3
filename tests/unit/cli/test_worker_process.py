"""What goes on in the background of a worker's process."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icestream.api.errors import ConfigError, Problem, SourceUnavailable
from icestream.cli.worker_process import ClusterId


def test_the_cluster_id_is_asked_for_until_kafka_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Exception | str] = [
        ConfigError([Problem("sasl.jaas.config", "Kafka refuses the login")]),
        SourceUnavailable("away"),
        "the-id",
    ]

    class Topics:
        def __init__(self, settings: Mapping[str, str]) -> None: ...

        def cluster_id(self) -> str:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("icestream.kafka.topics.Topics", Topics)
    waits: list[float] = []
    asked = ClusterId({"bootstrap.servers": "localhost:9092"}, wait=waits.append)
    assert asked() is None
    asked._ask()
    assert asked() == "the-id" and len(waits) == 2
