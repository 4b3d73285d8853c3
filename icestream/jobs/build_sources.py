"""From the config of a source connector to its manager. Called by `jobs.build`."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from icestream.api.config import Config
from icestream.api.source import Source
from icestream.api.source_settings import SOURCE_CONNECTOR
from icestream.connectors.file.lines import FileLines, StdinLines
from icestream.connectors.file.settings import FILE_STREAM_SOURCE
from icestream.jobs.source_job import SourceJob, SourceManager
from icestream.jobs.source_outlets import ensure_topic, open_outlet
from icestream.jobs.source_records import source_path_from
from icestream.jobs.source_stores import SourcePlace

_POLLS_A_SLICE: Final = 10
"""A transaction costs as much as 10,000 records: a source that is behind puts several polls in one."""


def source_manager(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    reached: Callable[[str], None] = lambda point: None,
) -> SourceManager:
    place = SourcePlace(worker, config)
    own = FILE_STREAM_SOURCE.parse(config)
    path = source_path_from(config)
    return SourceManager(
        _job(name, config, place, own),
        _source(own),
        lambda found: path.ready(found, int(time.time() * 1000)),
        lambda topic: ensure_topic(topic, place),
        lambda: open_outlet(name, place, reached),
        time.monotonic,
        lambda: dt.datetime.now(dt.UTC),
        reached,
    )


def _job(name: str, config: Config, place: SourcePlace, own: Mapping[str, Any]) -> SourceJob:
    common = SOURCE_CONNECTOR.parse({**config, "name": name})
    interval = float(place.worker.get("offset.flush.interval.ms", "60000")) / 1000
    return SourceJob(
        name,
        rows=_POLLS_A_SLICE * max(1, own["batch.size"]),
        commit_seconds=0.0 if place.is_exactly_once else interval,
        tolerates_all=common["errors.tolerance"] == "all",
        logs_rejects=common["errors.log.enable"],
    )


def _source(own: Mapping[str, Any]) -> Source:
    return FileLines(own["file"], own["topic"]) if own["file"] else StdinLines(own["topic"])
