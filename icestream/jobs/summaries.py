"""What a commit says about itself in the snapshot summary, beside the job's checkpoint."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from icestream.api.batch import Batch, BatchResult, Rejected

REJECTED = "icestream.rejected-offsets"
FILTERED_BY = "icestream.filtered-by"
_MOST_REJECTED = 200


def summary(batch: Batch, taken: BatchResult, valid_through: dt.datetime | None) -> dict[str, str]:
    """Iceberg's own keys for Kafka Connect commits, the offsets that were rejected if they are few,
    and how many records each transform dropped."""
    said = {"kafka.connect.commit-id": batch.id}
    if valid_through is not None:
        said["kafka.connect.valid-through-ts"] = valid_through.isoformat().replace("+00:00", "Z")
    if taken.rejected and len(taken.rejected) <= _MOST_REJECTED:
        said[REJECTED] = listed(taken.rejected)
    if taken.dropped:
        said[FILTERED_BY] = ",".join(f"{alias}:{count}" for alias, count in sorted(taken.dropped.items()))
    return said


def listed(rejected: Sequence[Rejected]) -> str:
    """`topic-0:17,topic-2:5`"""
    return ",".join(f"{record.partition}:{record.offset}" for record in rejected)
