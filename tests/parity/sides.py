"""The two workers that are compared, each a process of its own."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

from confluent_kafka import Producer

from icestream.embedded.java import java
from icestream.embedded.topics import ensure_topic
from tests.java_libraries import fetch
from tests.parity.sending import Side

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_READY_S: Final = 240.0
_STOP_S: Final = 60.0


def fill(bootstrap: str) -> None:
    """The topic that the sinks read, with a few records."""
    ensure_topic(bootstrap, "parity-in", partitions=1)
    ensure_topic(bootstrap, "parity-out", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(5):
        producer.produce("parity-in", value=json.dumps({"schema": None, "payload": f"line {number}"}))
    producer.flush(_STOP_S)


@contextmanager
def kafka_connect(bootstrap: str, folder: Path) -> Iterator[Side]:
    """The real one, version 4.3.1, with the file-stream connectors."""
    library = fetch("kafka-connect-loggers")
    jmx_port = _free_port()
    jmx = {
        **dict.fromkeys(("port", "rmi.port"), jmx_port),
        **dict.fromkeys(("authenticate", "ssl"), "false"),
        "host": "127.0.0.1",
    }
    command = [
        *(java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO"),
        *(f"-Dcom.sun.management.jmxremote.{key}={value}" for key, value in jmx.items()),
        *("-Djava.rmi.server.hostname=127.0.0.1", "-cp", f"{library}/*"),
        "org.apache.kafka.connect.cli.ConnectDistributed",
    ]
    with _running("kafka-connect", command, bootstrap, folder) as side:
        yield replace(side, jmx_port=jmx_port)


@contextmanager
def icestream(bootstrap: str, folder: Path) -> Iterator[Side]:
    program = Path(sys.executable).with_name("icestream")
    with _running("icestream", [str(program), "distributed"], bootstrap, folder) as side:
        yield side


@contextmanager
def _running(name: str, command: Sequence[str], bootstrap: str, folder: Path) -> Iterator[Side]:
    port = _free_port()
    properties = folder / f"{name}.properties"
    properties.write_text(
        "".join(f"{key}={value}\n" for key, value in _worker(name, bootstrap, port).items())
    )
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(properties)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield Side(name, port, str(folder), lambda: _wait_until_ready(name, port, process, log))
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)


def _free_port() -> int:
    """One that the brokers, which start at the same time, do not choose from."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _worker(name: str, bootstrap: str, port: int) -> Mapping[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "group.id": f"parity-{name}",
        "key.converter": _JSON,
        "value.converter": _JSON,
        "offset.flush.interval.ms": "1000",
        "access.control.allow.origin": "http://ui",
        "icestream.file.connectors.enabled": "true",
        **{
            f"{kind}.storage.{key}": value
            for kind in ("config", "offset", "status")
            for key, value in (("topic", f"parity-{name}-{kind}"), ("replication.factor", "1"))
        },
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }


def _wait_until_ready(name: str, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    side = Side(name, port, "")
    deadline = time.monotonic() + _READY_S
    # A worker is healthy before its group has a leader, and refuses changes till then.
    while _status(side, "/health") != 200 or _status(side, "/connectors/nobody", "DELETE") != 404:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)


def _status(side: Side, path: str, method: str = "GET") -> int:
    try:
        return _answer(side, path, method)[0]
    except OSError:
        return 0


def clear(side: Side) -> None:
    """Delete all connectors; wait until they are gone."""
    deadline = time.monotonic() + _STOP_S
    while names := json.loads(_answer(side, "/connectors", "GET")[1]):
        for name in names:
            _status(side, f"/connectors/{quote(name, safe='')}", "DELETE")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{side.name} does not delete {names}")


def _answer(side: Side, path: str, method: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", side.port, timeout=_READY_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
