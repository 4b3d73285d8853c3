"""Log lines about rejected records, as Kafka Connect writes them. For the job managers of sinks."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from icestream.api.batch import Rejected
from icestream.jobs.sink_job import SinkJob

_log = logging.getLogger(__name__)


def log_rejected(job: SinkJob, rejected: Sequence[Rejected]) -> None:
    """One line for all of them, and one for each if `errors.log.enable` asks for it.

    Never a value: reasons may quote one, so even they are told only on request.
    """
    if not rejected:
        return
    context = {"connector": job.name}
    first = rejected[0]
    _log.warning(
        "rejected %s records, the first: offset %s of %s (%s)",
        len(rejected),
        first.offset,
        first.partition,
        first.stage,
        extra=context,
    )
    if job.logs_rejects:
        for record in rejected:
            _log.error("%s", _line(job, record), extra=context)


def _line(job: SinkJob, record: Rejected) -> str:
    where = ""
    if job.logs_messages:
        where = (
            f", where consumed record is {{topic='{record.partition.topic}', "
            f"partition={record.partition.number}, offset={record.offset}, timestamp={record.timestamp_ms}}}"
        )
    return (
        f"Error encountered in task {job.name}-{record.task}. Executing stage '{record.stage}' with class "
        f"'{record.class_name}'{where}. {record.exception}: {record.reason}"
    )
