"""The two that are compared: how each is started and configured. What they share is written once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.table import BenchTable
from icestream.java_artifacts import read_lock

TASKS: Final = 3
HEAP: Final = "2g"
COMMIT_INTERVAL_MS: Final = 10_000
CONTROL_TOPIC: Final = "control-iceberg"

PEER_LOCK: Final = Path(__file__).parents[1] / "tests" / "java-artifacts.lock"
KAFKA_VERSION, ICEBERG_VERSION = (
    next(root.version for root in read_lock(PEER_LOCK)["kafka-connect"].roots if root.artifact == artifact)
    for artifact in ("connect-runtime", "iceberg-kafka-connect")
)
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True)
class Side:
    """A worker that runs sink connectors; `command` makes its command line from its properties file."""

    name: str
    title: str
    command: Callable[[Path], Sequence[str]]
    worker: Mapping[str, str] = field(default_factory=dict)
    connector: Mapping[str, str] = field(default_factory=dict)


def peer_jars(name: str) -> Path:
    from icestream.embedded.jars import fetch

    return fetch(name, PEER_LOCK)


def ours() -> Side:
    program = Path(sys.executable).with_name("icestream")
    return Side(
        name="ours",
        title="Icestream",
        command=lambda properties: [str(program), "standalone", str(properties)],
        worker={"spark.driver.memory": HEAP},
    )


def theirs() -> Side:
    """The real Kafka Connect, with larger fetches and another garbage collector than by default."""
    from icestream.embedded.java import java

    library, program = peer_jars("kafka-connect"), java()
    return Side(
        name="theirs",
        title=f"Kafka Connect {KAFKA_VERSION}",
        command=lambda properties: [
            program,
            f"-Xmx{HEAP}",
            *PEER_JVM,
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            *("-cp", f"{library}/*"),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            str(properties),
        ],
        connector=PEER_CONSUMER,
    )


# Took less CPU and less memory than G1, Java's own choice, when both were tried on two cores.
PEER_JVM: Final = ("-XX:+UseParallelGC",)
PEER_CONSUMER: Final = {
    "consumer.override.max.poll.records": "10000",
    "consumer.override.max.partition.fetch.bytes": "16777216",
    "consumer.override.receive.buffer.bytes": "1048576",
}


def worker_properties(side: Side, *, bootstrap: str, port: int, offsets: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": _JSON,
        "value.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": str(offsets),
        "offset.flush.interval.ms": "1000",
        **side.worker,
    }


def connector_config(
    side: Side, table: BenchTable, *, topic: str, evolve_schema: bool, interval_ms: int = COMMIT_INTERVAL_MS
) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": topic,
        "tasks.max": str(TASKS),
        "iceberg.control.topic": CONTROL_TOPIC,
        "iceberg.control.commit.interval-ms": str(interval_ms),
        "iceberg.control.commit.timeout-ms": "60000",
        "iceberg.tables.evolve-schema-enabled": str(evolve_schema).lower(),
        **table.connector_settings(),
        **side.connector,
    }


def properties_text(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
