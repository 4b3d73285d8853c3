"""From the config of an Iceberg sink to its manager. Called late: Spark is slow to import."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping

from icestream.api.config import Config, subset
from icestream.connectors.iceberg.catalogs import open_catalog
from icestream.connectors.iceberg.table import IcebergTable
from icestream.jobs.borders import SinkTable
from icestream.jobs.channel import Channel, KafkaChannel, prepare_topics
from icestream.jobs.job import job_from
from icestream.jobs.limited_table import LimitedTable
from icestream.jobs.shared import Shared
from icestream.jobs.sink_manager import SinkManager
from icestream.kafka.clients import client_settings
from icestream.kafka.topics import Topics
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.run import SparkPlane, SparkRunner
from icestream.plugins import sink_plugin

_WRITE_PROPS = ("iceberg.tables.write-props.", "iceberg.table.write-props.")


def spark_runner(spark: SparkPlane, name: str, config: Config, worker: Mapping[str, str]) -> SparkRunner:
    job = job_from(name, config)
    reads = client_settings(worker, "consumer", subset(config, "consumer.override."))
    return spark.runner(name, reads, RecordSettings.of(config), job.tasks_max, job.limits.bytes)


def job_manager(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    runner: SparkRunner,
    reached: Callable[[str], None] = lambda point: None,
    shared: Shared | None = None,
    wake: Callable[[], None] = lambda: None,
) -> SinkManager:
    """`shared` is what all jobs of a worker have in common; without it the job has its own and polls."""
    job = job_from(name, config)
    admin = client_settings(worker, "admin", subset(config, "admin.override."))
    topics = shared.clusters.topics(admin) if shared else Topics(admin)
    news = shared.clusters.watch(admin) if shared else None
    write_props = {key: value for prefix in _WRITE_PROPS for key, value in subset(config, prefix).items()}

    def table(of: str) -> Callable[[], SinkTable]:
        return lambda: IcebergTable(open_catalog(config), of, name, write_props=write_props)

    tables = [LimitedTable(table(each)) for each in job.tables]

    def open_channel() -> Channel:
        prepare_topics(job, topics)
        plugin = sink_plugin(config.get("connector.class", ""))
        overrides = plugin.client_overrides(config, "producer")
        return KafkaChannel(job, client_settings(worker, "producer", overrides), _now, between)

    def between() -> None:
        reached("published a part")
        runner.refuse_cancelled()

    gate = shared.gate if shared else None
    return SinkManager(
        job, topics, tables, runner, open_channel, time.monotonic, _now, reached, news, wake, gate
    )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
