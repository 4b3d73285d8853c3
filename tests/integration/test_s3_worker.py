"""The S3 sink through a real worker, with Spark and a bucket of moto."""

from __future__ import annotations

import json
from collections.abc import Mapping

from confluent_kafka import Producer

from icestream.connectors.s3.stores.opening import open_store
from icestream.kafka.topics import Topics
from tests.behaviours.test_sinks import bucket_config
from tests.integration.worker_world import World, eventually

BASE = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "2",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "s3.compression.type": "gzip",
}


class Lake:
    """A connector, its topic of three partitions, and its bucket."""

    def __init__(self, world: World, name: str, bucket: Mapping[str, str], **more: str) -> None:
        self.world, self.name = world, name
        self.config = {**BASE, **bucket, "topics": name, **more}
        self.store = open_store(self.config)
        Topics({"bootstrap.servers": world.bootstrap}).create(name, 3, 1)

    def produce(self, ids: range, partition: int) -> None:
        producer = Producer({"bootstrap.servers": self.world.bootstrap})
        for number in ids:
            producer.produce(self.name, json.dumps({"id": number}).encode(), partition=partition)
        assert producer.flush(60) == 0

    def objects(self) -> list[str]:
        return [one.key for one in self.store.list(f"topics/{self.name}/")]

    def waits_for(self) -> str:
        shown = next(one for one in self.world.client.overview() if one.name == self.name)
        assert shown.progress is not None
        return shown.progress.waits_for


def test_objects_are_those_of_flush_size_and_the_rest_waits_until_the_clock_says_otherwise(
    world: World, s3: Mapping[str, str]
) -> None:
    lake = Lake(world, "lake", bucket_config(dict(s3)), **{"flush.size": "4"})
    lake.produce(range(10), 0)
    lake.produce(range(10, 13), 1)
    report = world.client.validate(lake.config["connector.class"], {**lake.config, "name": "lake"})
    assert [one["value"]["name"] for one in report["configs"] if one["value"]["errors"]] == []
    world.client.create("lake", lake.config)
    full = [f"topics/lake/partition=0/lake+0+000000000{offset}.json.gz" for offset in (0, 4)]
    eventually(lambda: lake.objects() == full)
    eventually(lambda: "waiting for flush.size" in lake.waits_for())
    assert "partition 1 has 3 of 4 records, and 1 more partitions" in lake.waits_for()
    lake.produce(range(13, 14), 1)
    eventually(lambda: lake.objects() == [*full, "topics/lake/partition=1/lake+1+0000000000.json.gz"])
    world.client.put_config("lake", {**lake.config, "icestream.s3.commit.interval.ms": "200"})
    eventually(lambda: len(lake.objects()) == 4)
    assert lake.objects()[2] == "topics/lake/partition=0/lake+0+0000000008.json.gz"
    told = world.command(
        "verify", "lake", "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "14 in the topic, 14 in the table" in told.stdout
    world.client.delete("lake")
