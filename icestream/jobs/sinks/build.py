"""From the config of a sink to its manager. Called by `jobs.build`, in the thread of the job."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.api.history import Observer
from icestream.api.sink import SinkPlugin
from icestream.jobs.publishing.publisher import KafkaPublisher, Publisher, create_missing_topics
from icestream.jobs.sinks.batches.staging import BatchRunner
from icestream.jobs.sinks.job import sink_job
from icestream.jobs.sinks.limited_sink import LimitedSink
from icestream.jobs.sinks.manager import SinkManager
from icestream.jobs.worker_resources import WorkerResources
from icestream.kafka.clients import client_settings
from icestream.kafka.java_settings import is_connection_key
from icestream.kafka.topics import Topics
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from icestream.plugins import sink_plugin

if TYPE_CHECKING:
    # For its name alone: a worker without Spark jobs is ready at once.
    from icestream.pipeline.spark_runner import SparkPlane


def batch_runner(
    name: str, config: Config, worker: Mapping[str, str], spark: Callable[[], SparkPlane]
) -> BatchRunner:
    """Who runs the batches of a sink: Spark, or the worker itself."""
    plugin = sink_plugin(config.get("connector.class", ""))
    options = plugin.options(config)
    job = sink_job(name, config, options)
    reads = client_settings(worker, "consumer", subset(config, "consumer.override."))
    records = RecordSettings.of(config, needs_keys=options.needs_keys, needs_headers=options.needs_headers)
    if plugin.uses_spark:
        return spark().runner(name, reads, records, job.tasks_max, job.limits.bytes)
    return InWorkerRunner(reads, records, 2 * job.limits.bytes)


def sink_manager(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    runner: BatchRunner,
    reached: Callable[[str], None] = lambda point: None,
    shared: WorkerResources | None = None,
    wake: Callable[[], None] = lambda: None,
    observer: Observer | None = None,
) -> SinkManager:
    """`shared` is what all jobs of a worker have in common; without it the job has its own and polls."""
    plugin = sink_plugin(config.get("connector.class", ""))
    options = plugin.options(config)
    job = sink_job(name, config, options)
    admin = client_settings(worker, "admin", subset(config, "admin.override."))
    topics = shared.clusters.topics(admin) if shared else Topics(admin)
    watch = shared.clusters.watch(admin) if shared else None
    sink = LimitedSink(
        lambda: plugin.open_on_spark(name, config, runner.queries),
        plugin.answer_seconds,
        options.commit_answer_seconds,
    )

    def open_publisher() -> Publisher:
        create_missing_topics(job, sink.event_topics(), _published_topics(plugin, config, worker, topics))
        overrides = plugin.client_overrides(config, "producer")
        return KafkaPublisher(job, client_settings(worker, "producer", overrides), between)

    def between() -> None:
        reached("published a part")
        runner.refuse_cancelled()

    gate = shared.gate if shared else None
    return SinkManager(
        job,
        topics,
        sink,
        runner,
        open_publisher,
        time.monotonic,
        _now,
        reached,
        watch,
        wake,
        gate,
        maintainer=lambda target: plugin.maintainer(name, config, target),
        observer=observer,
    )


def _published_topics(
    plugin: SinkPlugin, config: Config, worker: Mapping[str, str], topics: Topics
) -> Topics:
    """Kafka as the publisher sees it: a connector may give it another address or login than its readers."""
    for prefix in plugin.client_prefixes:
        own = {key: value for key, value in subset(config, prefix).items() if is_connection_key(key)}
        if not own:
            continue
        seen = Topics(client_settings(worker, "admin", own | subset(config, "admin.override.")))
        if seen.cluster_id() != topics.cluster_id():
            key = f"{prefix}bootstrap.servers"
            raise ConfigError(
                [
                    Problem(
                        key,
                        f"'{key}' leads to another Kafka than that of the topics: events and offsets are one "
                        "transaction, which two clusters cannot share; name brokers of the same one",
                    )
                ]
            )
        return seen
    return topics


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
