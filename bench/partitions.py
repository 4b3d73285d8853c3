"""`python -m bench.partitions`, which `make bench-partitions` calls: what partitions cost.

A drain of the same records in a few and in many partitions, through a worker; and one batch of two records a
partition, in this process, so that nothing is in the figure but the batch: plan, Spark job, commit and the
transaction of Kafka.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Final

import click

from bench.rounds import Load, drain
from bench.sides import connector_config, ours
from bench.table import BenchTable
from icestream.embedded import kafka

_RECORDS_A_PARTITION: Final = 2


def produce(bootstrap: str, topic: str, partitions: int, records: Iterator[bytes], count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, "log_level": 0})
    for number, record in enumerate(itertools.islice(records, count)):
        while True:
            try:
                producer.produce(topic, record, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def small_batches(bootstrap: str, partitions: int, rounds: int, folder: Path) -> list[float]:
    """Seconds of each batch of two records a partition; the first one is not told."""
    from icestream.embedded.minio_logs import generate
    from icestream.embedded.topics import ensure_topic
    from icestream.jobs.sinks.build import batch_runner, sink_manager
    from icestream.pipeline.spark_runner import SparkPlane

    topic = f"batches-{partitions}"
    ensure_topic(bootstrap, topic, partitions)
    folder.mkdir()
    table = BenchTable(folder)
    table.create()
    config = connector_config(ours(), table, topic=topic, evolve_schema=True, interval_ms=10)
    worker = {
        "bootstrap.servers": bootstrap,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    config = {**worker, **config}
    spark = SparkPlane(worker)
    spark.warm_up({"bootstrap.servers": bootstrap})
    name = f"bench-{topic}"
    records = generate("api", (rounds + 1) * partitions * _RECORDS_A_PARTITION)
    seconds = []
    with closing(
        sink_manager(name, config, worker, batch_runner(name, config, worker, lambda: spark))
    ) as manager:
        for number in range(1, rounds + 2):
            produce(bootstrap, topic, partitions, records, partitions * _RECORDS_A_PARTITION)
            began = time.monotonic()
            while manager.progress.batches < number:
                time.sleep(manager.tick())
            seconds.append(time.monotonic() - began)
    return seconds[1:]


@click.command()
@click.option("--few", default=3, show_default=True, help="Partitions to compare with.")
@click.option("--many", default=1_000, show_default=True)
@click.option("--records", default=1_000_000, show_default=True, help="Of each drain; 0 for none.")
@click.option("--rounds", default=3, show_default=True)
def main(few: int, many: int, records: int, rounds: int) -> None:
    """Drain a topic of few and of many partitions, and time batches of two records a partition."""
    from icestream.embedded.minio_logs import generate
    from icestream.embedded.topics import ensure_topic

    with tempfile.TemporaryDirectory(prefix="icestream-bench-") as place:
        folder = Path(place)
        with kafka.running_broker(folder / "kafka") as broker:
            for partitions in (few, many):
                _tell(
                    f"batch of {partitions * _RECORDS_A_PARTITION} records in {partitions} partitions",
                    small_batches(broker.bootstrap, partitions, rounds, folder / f"batches-{partitions}"),
                )
            if not records:
                return
            for partitions in (few, many):
                topic = f"drain-{partitions}"
                ensure_topic(broker.bootstrap, topic, partitions)
                produce(broker.bootstrap, topic, partitions, generate("api", records), records)
            taken: dict[int, list[float]] = {few: [], many: []}
            for number in range(rounds):
                for partitions in (few, many):
                    load = Load(broker.bootstrap, f"drain-{partitions}", records, broker.pid, True)
                    done = drain(
                        ours(), number, load, folder / f"drain-{partitions}-{number}", lambda rows: None
                    )
                    taken[partitions].append(done.seconds)
                    print(
                        f"drain of {partitions} partitions: {done.seconds:.1f} s, "
                        f"{done.cpu_seconds:.1f} CPU-seconds",
                        flush=True,
                    )
            for partitions, seconds in taken.items():
                _tell(f"drain of {records} records in {partitions} partitions", seconds)
            print(f"{median(taken[many]) / median(taken[few]):.2f} times as long in {many} as in {few}")


def _tell(what: str, seconds: Sequence[float]) -> None:
    print(f"{what}: median {median(seconds):.2f} s of {[round(one, 2) for one in seconds]}", flush=True)


if __name__ == "__main__":
    main()
