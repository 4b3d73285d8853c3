"""FileStreamSink and FileStreamSource as plugins: what the rest of the worker knows of them.

Both are off, as in Kafka Connect since 3.1.1: there `plugin.path` has to name their jar, as its quickstart
says, and that switches them on here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin, JavaClass
from icestream.api.errors import Problem
from icestream.api.offset_admin import OffsetEntry
from icestream.api.sink import Sink, SinkOptions, SinkPlugin
from icestream.api.source import Source, SourcePlugin
from icestream.connectors.file.settings import (
    ENABLED,
    FILE_STREAM_SINK,
    FILE_STREAM_SOURCE,
    FOLDERS,
    file_problem,
)

_PACKAGE: Final = "org.apache.kafka.connect.file."
_KAFKA_VERSION: Final = "4.3.1"
_ROWS: Final = 50_000
_BYTES: Final = 32 * 1024 * 1024
"""A batch of lines is held in memory."""


class _FilePlugin(ConnectorPlugin):
    """What both have in common."""

    java_loggers: ClassVar = {"org.apache.kafka.connect.file": ("icestream.connectors.file",)}
    worker_settings = (ENABLED, FOLDERS)
    jar = "connect-file"

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        """Why the worker does not let it run, or not with its file."""
        if not (ENABLED.parse(worker.get(ENABLED.name, "false")) or self.is_on_plugin_path(worker)):
            return [
                Problem(
                    "connector.class",
                    f"'{self.classes[0].simple_name}' is switched off: it reads or writes files of the "
                    f"worker; set {ENABLED.name}=true in the worker's config, or plugin.path to Kafka's "
                    "connect-file jar",
                )
            ]
        path = config.get("file", "").strip()
        reason = file_problem(path, worker, is_read=self.kind == "source") if path else None
        return [Problem("file", reason)] if reason else []


class FileSinkPlugin(_FilePlugin, SinkPlugin):
    classes = (
        JavaClass(f"{_PACKAGE}FileStreamSinkConnector", f"{_PACKAGE}FileStreamSinkTask", _KAFKA_VERSION),
    )
    settings = FILE_STREAM_SINK
    may_have_process = False
    """Two processes could append to the file at the same time, while the older one ends."""
    answer_seconds = None
    """The reader of a pipe may rest; to try again meanwhile would be to write all of it twice."""
    probes_kafka = False  # Kafka Connect starts it whatever it points at

    def options(self, config: Config) -> SinkOptions:
        return SinkOptions(most_rows=_ROWS, most_bytes=_BYTES)

    def open(self, name: str, config: Config) -> Sink:
        from icestream.connectors.file.sink import FileSink

        return FileSink(name, config.get("file", "").strip() or None)


class FileSourcePlugin(_FilePlugin, SourcePlugin):
    classes = (
        JavaClass(f"{_PACKAGE}FileStreamSourceConnector", f"{_PACKAGE}FileStreamSourceTask", _KAFKA_VERSION),
    )
    settings = FILE_STREAM_SOURCE

    def open(self, task: Config) -> Source:
        from icestream.connectors.file.source import open_source

        return open_source(task)

    def check_offsets(self, config: Config, entries: Sequence[OffsetEntry]) -> None:
        from icestream.connectors.file.source import check_offsets

        check_offsets(config, entries)

    def exactly_once_problem(self, config: Config) -> str | None:
        """A file is only read on; standard input is gone once it is read."""
        if config.get("file", "").strip():
            return None
        return "The connector does not support exactly-once semantics with the provided configuration."
