"""`/live` and `/ready` of a real worker whose JVM of Spark is killed, and cannot start again for a while."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from icestream.embedded.java import java
from icestream.embedded.ports import free_port
from icestream.embedded.process import spawn
from tests.integration.worker_world import eventually


def _java_of(parent: int) -> int | None:
    """The JVM that a process has started, perhaps through a script."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            parents[int(entry.name)], names[int(entry.name)] = int(rest.split()[1]), name
    for pid, name in names.items():
        above = pid
        while above and above != parent:
            above = parents.get(above, 0)
        if above == parent and name == "java":
            return pid
    return None


@pytest.mark.slow
def test_a_jvm_that_is_killed_comes_back_and_one_that_cannot_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And Kafka is away all the time, which is no reason either way."""
    broken = tmp_path / "java-is-broken"
    wrapper = tmp_path / "jdk" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(f'#!/bin/sh\n[ -e {broken} ] && exit 1\nexec {java()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    port = free_port()
    config = tmp_path / "worker.properties"
    config.write_text(
        "bootstrap.servers=127.0.0.1:1\n"
        f"listeners=http://127.0.0.1:{port}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        f"offset.storage.file.filename={tmp_path}/offsets\n"
        "spark.driver.memory=512m\n"
        "spark.master=local[1]\n"
        "icestream.live.spark.timeout.ms=2000\n"
    )
    log = tmp_path / "worker.log"
    command = [sys.executable, "-m", "icestream.cli.main", "standalone", str(config)]
    worker = spawn(command, output=log, die_with_parent=True)

    def ask(path: str) -> httpx.Response | None:
        try:
            return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=60)
        except httpx.TransportError:
            assert worker.is_alive(), log.read_text()[-3000:]
            return None

    def says(path: str, status: int) -> Any:
        def answered() -> bool:
            answer = ask(path)
            return answer is not None and answer.status_code == status

        eventually(answered, 180)
        answer = ask(path)
        assert answer is not None
        return answer.json()

    try:
        says("/ready", 200)
        assert says("/live", 200)["status"] == "alive"
        first = _java_of(worker.pid)
        assert first is not None

        broken.touch()
        os.kill(first, signal.SIGKILL)
        said = says("/live", 503)
        assert said["status"] == "not alive"
        assert "cannot be opened again" in said["message"]
        assert says("/ready", 200)["status"] == "ready"
        assert says("/health", 500)["status"] == "unhealthy"

        broken.unlink()
        assert says("/live", 200)["status"] == "alive"
        assert says("/health", 200)["status"] == "healthy"
        assert _java_of(worker.pid) not in (None, first)
    finally:
        worker.send(signal.SIGTERM)
        assert worker.wait(60), log.read_text()[-3000:]
