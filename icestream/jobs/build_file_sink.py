"""From the config of a FileStreamSink to its manager. Called by `jobs.build`."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from icestream.api.config import Config, subset
from icestream.connectors.file.line_file import LineFile, LineSink, StandardOutput
from icestream.jobs.channel import Channel, KafkaChannel, prepare_dead_letters
from icestream.jobs.file_sink_job import FileSinkManager
from icestream.jobs.file_sink_lines import ChunkLines, chunk_lines
from icestream.jobs.job import job_from
from icestream.kafka.chunk import Chunk
from icestream.kafka.clients import client_settings
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.pipeline.record_path import RecordSettings, record_path_from


def file_sink_manager(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    reached: Callable[[str], None] = lambda point: None,
) -> FileSinkManager:
    job = job_from(name, config)
    topics = Topics(client_settings(worker, "admin", subset(config, "admin.override.")))
    path = config.get("file", "").strip()

    path_of_records = record_path_from(RecordSettings.of(config))

    def lines_of(chunk: Chunk) -> ChunkLines:
        return chunk_lines(path_of_records, chunk)

    def open_channel() -> Channel:
        prepare_dead_letters(job, topics)
        producer = client_settings(worker, "producer", subset(config, "producer.override."))
        return KafkaChannel(job, producer, _now)

    def open_file() -> LineSink:
        return LineFile(Path(path), name, reached) if path else StandardOutput()

    return FileSinkManager(
        job,
        topics,
        SliceReader(client_settings(worker, "consumer", subset(config, "consumer.override."))),
        lines_of,
        open_file,
        open_channel,
        time.monotonic,
        _now,
        reached,
    )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
