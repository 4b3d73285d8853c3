"""Spring's endpoints of a real worker with an S3 sink that validates: the counts are those of the bucket, and
the commands of docs/observability.md work as they stand."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from icestream.kafka.topics import Topics
from tests.behaviours.test_sinks import bucket_config
from tests.integration.worker_world import World, eventually
from tests.kit.programs import require_programs

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()
NAME = "user-events"
SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


def get(world: World, path: str) -> Any:
    return httpx.get(f"http://127.0.0.1:{world.actuator}/actuator{path}", trust_env=False, timeout=60).json()


@pytest.fixture
def sink(world: World, s3: Mapping[str, str]) -> str:
    Topics({"bootstrap.servers": world.bootstrap}).create(NAME, 3, 1)
    config = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        **bucket_config(dict(s3)),
        "topics": NAME,
        "flush.size": "1000",
        "icestream.s3.commit.interval.ms": "200",
        "value.schema.inline": json.dumps(SCHEMA),
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{NAME}-dlq",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    world.produce(NAME, *({"id": number} for number in range(20)), {"id": "x"}, {"no": 1}, b"no json")
    world.client.create(NAME, config)
    return NAME


def test_counts_are_those_of_the_bucket_and_the_pages_commands_work(world: World, sink: str) -> None:
    def counted() -> bool:
        said = get(world, "/connector/metrics").get(sink, {})
        return said.get("recordsProcessed", 0) + said.get("recordsFailed", 0) == 23

    try:
        eventually(counted)
        said = get(world, "/connector/metrics")[sink]
        assert (said["recordsProcessed"], said["recordsFailed"]) == (20, 3)
        # What is no JSON at all never got as far as its schema.
        assert said["schemaValidationFailures"] == 2
        assert said["state"] == "RUNNING" and said["s3Writes"] >= 1 and said["lastCommit"]
        timer = get(world, f"/metrics/kafka.connector.s3.write.duration?tag=connector:{sink}")
        assert {one["statistic"]: one["value"] > 0 for one in timer["measurements"]} == {
            "COUNT": True,
            "TOTAL_TIME": True,
            "MAX": True,
        }
        assert timer["availableTags"] == [{"tag": "topic", "values": [sink]}]
        eventually(lambda: get(world, "/health/kafka").get("status") == "UP")
        assert get(world, "/health/kafka")["details"]["nodes"] == 1
        assert get(world, "/health/spark") == {"status": "UP"}
        the_pages_commands_work(world)
    finally:
        world.client.delete(sink)


def the_pages_commands_work(world: World) -> None:
    require_programs("curl", "jq")
    commands = re.findall(r"^curl .*localhost:8081/.*$", PAGE, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        here = command.replace("localhost:8081", f"127.0.0.1:{world.actuator}")
        ran = subprocess.run(
            ["bash", "-o", "pipefail", "-c", here], capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0 and ran.stdout.strip(), f"{command}: {ran.stderr}"
