"""Commits what Java's workers have written and its coordinator has not, when a sink of ours takes its job
over. Called by the sink before its first batch; see docs/job-manager.md."""

from __future__ import annotations

import uuid

from pyiceberg.catalog import Catalog
from pyiceberg.table.refs import MAIN_BRANCH

from icestream.api.config import Config
from icestream.api.errors import FatalError
from icestream.api.sink import LeftBehind
from icestream.connectors.iceberg.coordinator.avro_datum import BadDatum
from icestream.connectors.iceberg.coordinator.events import DataWritten, decoded
from icestream.connectors.iceberg.coordinator.rounds import Envelope
from icestream.connectors.iceberg.coordinator.table_commits import (
    JavaJob,
    Round,
    TableCommits,
    failures,
)

_THREADS = 4


def java_job_of(name: str, group: str, control_topic: str, config: Config) -> JavaJob:
    """A connector as its tables know it from Java's time."""
    prefix, suffix = "iceberg.table.", ".commit-branch"
    own = {
        key.removeprefix(prefix).removesuffix(suffix): value
        for key, value in config.items()
        if key.startswith(prefix) and key.endswith(suffix) and value
    }
    default = config.get("iceberg.tables.default-commit-branch") or MAIN_BRANCH
    return JavaJob(control_topic, group, f"{name}-0", default, own)


def commit_left_behind(catalog: Catalog, job: JavaJob, left: LeftBehind) -> None:
    """Raises what keeps a table from its files: until then the job does not begin."""
    envelopes = []
    for record in left.records:
        try:
            event = decoded(record.value) if record.value is not None else None
        except BadDatum as bad:
            raise FatalError(
                f"record {record.offset} of partition {record.partition} of topic '{job.control_topic}' is "
                f"no event: {bad}. Whose it is cannot be told; to go on without it, set the offset of group "
                f"'{job.group}-coord' behind it"
            ) from bad
        if event is not None and event.group == job.group and isinstance(event.payload, DataWritten):
            envelopes.append(Envelope(record.partition, record.offset, event.payload))
    if not envelopes:
        return
    tables = TableCommits(catalog, job, _THREADS, lambda: left.positions)
    try:
        outcomes = tables.commit(Round(uuid.uuid4(), left.positions), envelopes, lambda: None)
    finally:
        tables.close()
    if failed := failures(outcomes):
        raise failed[0]
