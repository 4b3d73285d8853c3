"""Secrets of config providers: wherever something goes wrong with them, only placeholders are told."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError, FatalError, SinkUnavailable
from icestream.api.manager import Manager
from icestream.api.status import State
from icestream.cluster.configs.providers import DirectoryProvider, Providers
from icestream.cluster.configs.secrets import discreet, secrets_of
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.logs import LineFormatter, hidden
from icestream.rest.shapes import report_json

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING, "icestream.file.connectors.enabled": "true"}
SINK = {"name": "sink", "connector.class": "FileStreamSink", "topics": "t", "file": "a-${env:PW}-b"}


def resolve(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value.replace("${env:PW}", "hunter2") for key, value in config.items()}


def refuse(name: str, config: Mapping[str, str], wake: object) -> Manager:
    raise FatalError(f"cannot open {config['file']}") from OSError(config["file"])


class RefusingAdmin:
    def read(self, name: str, config: Mapping[str, str]) -> list[Any]:
        raise SinkUnavailable(f"cannot read with {config['file']}")


@pytest.fixture
def service() -> ConnectorService:
    patience = Patience(2.0, 2.0)
    extras = Extras(resolve=resolve, offsets=RefusingAdmin(), patience=patience)  # type: ignore[arg-type]
    service = ConnectorService("w:1", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(refuse)
    return service


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


FILE = "root:x:0:0:Chief Officer,,:/root:/bin/fish\nann:x:1000:1000::/home/ann:/bin/tcsh\n"
"""A file of the worker, as `${dir:/etc:passwd}` puts it into a config."""


@pytest.mark.parametrize(
    "config",
    [
        {"transforms": "${dir:/etc:passwd}"},
        {"predicates": "a, ${dir:/etc:passwd}"},
        {"transforms": "c", "transforms.c.type": "Cast", "transforms.c.spec": "a:${dir:/etc:passwd}"},
        {"iceberg.tables": "a,${dir:/etc:passwd}"},
        {"value.schema.inline": "${dir:/etc:passwd}"},
        {"topics": "a,${dir:/etc:passwd}", "errors.deadletterqueue.topic.name": "a"},
        {"tasks.max": "${dir:/etc:passwd}"},
    ],
    ids=str,
)
def test_no_file_of_the_worker_is_told_in_parts(config: dict[str, str]) -> None:
    """Names of transforms and tables, items of lists, first words and capital letters are parts of it."""
    provided = {"${dir:/etc:passwd}": FILE}

    def resolve(given: Mapping[str, str]) -> dict[str, str]:
        return {key: value.replace(*next(iter(provided.items()))) for key, value in given.items()}

    service = ConnectorService("w:1", MemoryStore(), WORKER, extras=Extras(resolve=resolve))
    iceberg = {
        "name": "sink",
        "connector.class": "IcebergSink",
        "topics": "t",
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": "http://catalog",
    }
    report = report_json(service.validate({**iceberg, **config}))
    told = json.dumps(report)
    assert report["error_count"] > 0
    for line in FILE.splitlines():
        for part in line.split(","):
            assert part[:12].lower() not in told.lower() or len(part) < 8


def test_placeholders_do_not_fill_the_memory(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 900_000)
    of_files = Providers({"dir": DirectoryProvider()})
    large = f"${{dir:{tmp_path}:large}}"
    for config in (
        {"a": large * 1000},
        {f"k{number}": large for number in range(1000)},
        {"a": "${dir::x}" * 2000},
    ):
        with pytest.raises(ConfigError, match="cannot be resolved"):
            of_files.resolved(config)
    assert of_files.resolved({"a": "${other:x:y}" * 2000}) == {"a": "${other:x:y}" * 2000}


def test_what_the_config_says_itself_is_told() -> None:
    secrets = secrets_of(
        {"u": "http://${env:USER}@catalog:8181"}, {"u": "http://alice-the-great@catalog:8181"}
    )
    assert (
        discreet("http://catalog:8181 refuses ALICE-THE-GREAT", secrets)
        == "http://catalog:8181 refuses [hidden]"
    )
    assert discreet("nobody knows alice-the-great", secrets) == "nobody knows ${env:USER}"
