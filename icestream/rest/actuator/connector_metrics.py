"""`/actuator/connector/metrics`: one flat object for each connector of this worker."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from icestream.cluster.service import ConnectorService
from icestream.rest.actuator.meters import FAILED, INVALID, PROCESSED, WRITE, Measured


def connector_metrics(
    service: ConnectorService, measured: Sequence[Measured]
) -> Mapping[str, Mapping[str, object]]:
    def total(name: str, meter: object, statistic: str) -> float:
        mine = [one for one in measured if one.meter is meter and one.tags["connector"] == name]
        values = [one.values[statistic] for one in mine]
        return max(values, default=0.0) if statistic == "MAX" else sum(values)

    found: dict[str, Mapping[str, object]] = {}
    for job in service.local_jobs():
        progress, name = job.status.progress, job.name
        writes, seconds = total(name, WRITE, "COUNT"), total(name, WRITE, "TOTAL_TIME")
        found[name] = {
            "state": job.status.state.value,
            "lag": progress.lag,
            "lastCommit": _time(progress.last_commit_ms),
            "recordsProcessed": int(total(name, PROCESSED, "COUNT")),
            "recordsFailed": int(total(name, FAILED, "COUNT")),
            "schemaValidationFailures": int(total(name, INVALID, "COUNT")),
            "recordsInTarget": progress.rows,
            "s3Writes": int(writes),
            "s3WriteSecondsMean": round(seconds / writes, 6) if writes else None,
            "s3WriteSecondsMax": round(total(name, WRITE, "MAX"), 6) if writes else None,
        }
    return found


def _time(ms: int | None) -> str | None:
    return None if ms is None else dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat()
