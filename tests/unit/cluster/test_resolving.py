"""Secrets of config providers: wherever something goes wrong with them, only placeholders are told."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.api.status import RunningJob, State
from icestream.cluster.resolving import ResolvingStarter, secrets_of
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores import MemoryStore
from icestream.cluster.worker import Patience, Worker
from icestream.logs import LineFormatter, hidden

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING}
SINK = {"name": "sink", "connector.class": "FileStreamSink", "topics": "t", "file": "a-${env:PW}-b"}


def resolve(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value.replace("${env:PW}", "hunter2") for key, value in config.items()}


def refuse(name: str, config: Mapping[str, str], *, paused: bool) -> RunningJob:
    raise SinkUnavailable(f"cannot open {config['file']}") from OSError(config["file"])


class RefusingAdmin:
    def read(self, name: str, config: Mapping[str, str]) -> list[Any]:
        raise SinkUnavailable(f"cannot read with {config['file']}")


@pytest.fixture
def service() -> ConnectorService:
    worker = Worker("w:1", Patience(2.0, 2.0))
    worker.use(ResolvingStarter(refuse, resolve))
    extras = Extras(resolve=resolve, offsets=RefusingAdmin())  # type: ignore[arg-type]
    return ConnectorService(MemoryStore(), worker, WORKER, extras=extras)


def test_a_job_that_cannot_start_tells_no_secret(
    service: ConnectorService, caplog: pytest.LogCaptureFixture
) -> None:
    service.create("sink", SINK)
    status = service.status("sink")
    assert status.state is State.FAILED
    assert "cannot open a-${env:PW}-b" in (status.trace or "")
    assert "hunter2" not in (status.trace or "") + caplog.text


def test_offsets_that_cannot_be_read_tell_no_secret(service: ConnectorService) -> None:
    service.create("sink", SINK)
    with pytest.raises(SinkUnavailable) as told:
        service.offsets("sink")
    assert str(told.value) == "cannot read with a-${env:PW}-b"


@pytest.mark.parametrize("config", [{"x": "${env:PW}"}, {"connector.class": "of.${env:PW}"}])
def test_a_config_without_a_class_of_ours_tells_no_secret(
    service: ConnectorService, config: dict[str, str | None]
) -> None:
    with pytest.raises(ConfigError) as told:
        service.create("sink", config)
    assert "${env:PW}" in str(told.value) and "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("${a:b}", "S3CRET"),
        ("x${a:b}y", "xS3CRETy"),
        ("${a:1}:${a:2}@h", "user:S3CRET@h"),
        ("${a:1}${a:2}", "S3CRET"),
    ],
)
def test_parts_of_a_value_are_secrets_too(given: str, resolved: str) -> None:
    secrets = secrets_of({"key": given}, {"key": resolved})
    assert "S3CRET" not in hidden("the password S3CRET is wrong", secrets)


def test_lines_of_running_jobs_show_no_secret(service: ConnectorService) -> None:
    service.create("sink", SINK)
    record = logging.LogRecord("icestream.jobs", logging.ERROR, "", 0, "failed: %s", ("hunter2",), None)
    assert LineFormatter().format(record).endswith("failed: ${env:PW}")
