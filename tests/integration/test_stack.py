"""`icestream stack` as a user runs it, on free ports and in a folder of its own: with moto everywhere, and in
the long form with MinIO, nginx and Trino."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icestream.embedded import minio, ports, trino
from icestream.embedded.process import Process
from icestream.stack.processes import ProcessBackend
from icestream.stack.settings import settings_from
from icestream.stack.steps import catalog_settings, connector_configs
from icestream.stack.trino_client import Trino
from tests.kit.programs import needs_program, skip_without

RECORDS = 334
PASSWORD = "only-of-this-test"
PORTS = (
    *("SOURCE_API_PORT", "SOURCE_CONSOLE_PORT", "DEST_API_PORT", "DEST_CONSOLE_PORT"),
    *("KAFKA_EXTERNAL_PORT", "KAFKA_CONNECT_PORT", "TRINO_PORT"),
)
TOPICS = ("apilogs", "errorlogs", "auditlogs")
PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "stack.md"


def commands_of_the_page() -> list[list[str]]:
    """What stack.md shows, in its order; each without the word `icestream`."""
    blocks = re.findall(r"<!-- run by: \S+ -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for block in blocks for line in block.splitlines()]


class Stack:
    """The command in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        variables = {name: str(ports.free_port()) for name in PORTS} | {"MINIO_ROOT_PASSWORD": PASSWORD}
        self.environment = {**os.environ, **variables, "ICESTREAM_STACK_FOLDER": str(folder)}
        self.settings = settings_from(variables)
        self.backend = ProcessBackend(self.settings, folder=folder)

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "icestream.cli.main", *arguments],
            env=self.environment,
            cwd=self.folder.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        running = self.popen(*arguments)
        try:
            said, _ = running.communicate(timeout=800)
        finally:
            running.kill()
        assert running.returncode == code, f"{said}\n{self._ends_of_logs()}"
        return said

    def processes(self) -> list[Process]:
        notes = [json.loads(file.read_text()) for file in self.folder.glob("run/*.json")]
        notes += [json.loads(file.read_text()) for file in self.folder.glob("data/kafka/broker.json")]
        return [Process(note["pid"], note["started"]) for note in notes]

    def _ends_of_logs(self) -> str:
        return "\n".join(
            f"== {log.name}\n{log.read_text(errors='replace')[-1500:]}"
            for log in self.folder.glob("logs/*.log")
        )


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    made = Stack(tmp_path / "stack")
    yield made
    made.backend.stop(print)


@pytest.mark.slow
@pytest.mark.network
def test_the_stack_starts_lands_records_heals_stops_and_leaves_nothing(stack: Stack) -> None:
    said = stack.run("stack", "start", "--moto", "--no-trino", "--load", str(RECORDS))
    for number in range(1, 10):
        assert f"[{number}/9] " in said
    assert "moto stands in" in said and "streaming.auditlogs created" in said
    assert f"{3 * RECORDS:,} records are in the tables" in said
    endpoints = stack.backend.endpoints()
    assert endpoints is not None and endpoints.trino is None
    for topic in TOPICS:
        asked = ["--url", endpoints.worker, "--bootstrap-servers", endpoints.bootstrap]
        assert "None missing, none twice" in stack.run("verify", f"iceberg-sink-{topic}", *asked)

    again = stack.run("stack", "start", "--moto", "--no-trino")
    assert "runs already" in again and "created" not in again
    assert again.count(" exists") == 12, again

    note = json.loads((stack.folder / "run" / "iceberg-signatures.json").read_text())
    killed = Process(note["pid"], note["started"])
    killed.send(signal.SIGKILL)
    assert killed.wait(60)
    assert "not well: iceberg-signatures" in stack.run("stack", "status", code=1)
    assert "starting iceberg-signatures\n" in stack.run("stack", "start", "--moto", "--no-trino")
    assert "unhealthy" not in stack.run("stack", "status")
    assert "POST /_iceberg/v1/warehouses" in stack.run("stack", "logs", "iceberg-signatures")
    assert "there is no log of 'nobody'" in stack.run("stack", "logs", "nobody", code=1)

    running = stack.processes()
    assert len(running) >= 6 and all(process.is_alive() for process in running)
    assert "is stopped" in stack.run("stack", "stop")
    assert [
        log.name for log in stack.folder.glob("logs/*.log") if PASSWORD in log.read_text(errors="replace")
    ] == []
    assert not any(process.is_alive() for process in running)
    assert "does not run" in stack.run("stack", "stop")
    stack.run("stack", "clean", "--yes")
    assert {file.name for file in stack.folder.iterdir()} == {"lock"}


@pytest.mark.slow
@pytest.mark.network
def test_ctrl_c_in_a_start_leaves_nothing_running(stack: Stack) -> None:
    starting = stack.popen("stack", "start", "--moto", "--no-trino")
    try:
        assert starting.stdout is not None
        for line in starting.stdout:
            if line.startswith("starting iceberg-catalog"):
                break
        seen = stack.processes()
        assert "is at work already (start, pid" in stack.run("stack", "stop", code=1)
        starting.send_signal(signal.SIGINT)
        starting.communicate(timeout=300)
    finally:
        starting.kill()
    assert starting.returncode == 130
    assert seen and not any(process.is_alive() for process in [*seen, *stack.processes()])
    assert "does not run" in stack.run("stack", "stop")


def _counts(answer: Any) -> list[int]:
    return [int(value) for value in answer]


@pytest.mark.long
@pytest.mark.network
@needs_program("nginx")
def test_trino_spark_and_pyiceberg_count_the_same(stack: Stack) -> None:
    if minio.minio() is None:
        skip_without("MinIO", minio.HOW_TO_GET_IT)
    if trino.trino_java() is None:
        skip_without("Java for Trino", trino.HOW_TO_GET_JAVA)
    from icestream.connectors.iceberg.catalogs.opening import open_catalog

    said = stack.run("stack", "start", "--load", "5000")
    assert "trino> SHOW CATALOGS" in said and "20 rows" in said
    endpoints = stack.backend.endpoints()
    assert endpoints is not None and endpoints.trino is not None
    names = [f"streaming.{topic}" for topic in TOPICS]
    counting = "SELECT " + ", ".join(
        f"(SELECT count(*) FROM {{0}}{name}) AS c{i}" for i, name in enumerate(names)
    )
    by_trino = Trino(endpoints.trino).run(counting.format("kafkawarehouse.")).rows[0]
    answer = stack.run("sql", "--url", endpoints.worker, "-o", "json", counting.format(""))
    spark = json.loads(next(line for line in answer.splitlines() if line.startswith("{")))["rows"][0]
    with open_catalog(catalog_settings(stack.settings, endpoints)) as catalog:
        by_pyiceberg = [catalog.load_table(name).scan().count() for name in names]
    assert _counts(by_trino) == _counts(spark.values()) == by_pyiceberg == [5000, 5000, 5000]

    start, status, stop, clean, *asking = commands_of_the_page()
    stack.environment["ICESTREAM_URL"] = endpoints.worker
    assert "trino" in stack.run(*status)
    for command in asking:
        assert stack.run(*command), command
    stack.run(*stop)
    stack.run(*start)
    again = stack.backend.endpoints()
    assert again is not None and again.trino is not None
    assert _counts(Trino(again.trino).run(counting.format("kafkawarehouse.")).rows[0]) == by_pyiceberg
    assert [*connector_configs(stack.settings, again)] == [f"iceberg-sink-{topic}" for topic in TOPICS]
    stack.run(*clean)
    assert not any(process.is_alive() for process in stack.processes())
