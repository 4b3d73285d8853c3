"""Handlers about offsets: where a connector is in each partition, what a change would do, and the change.

Offsets travel as texts: JavaScript's numbers end at 2^53. Shapes: docs/console-api.md.
"""

from __future__ import annotations

from typing import Any, Final

from icestream.api.offset_admin import PartitionPosition
from icestream.cluster.settings.console_settings import Level
from icestream.jobs.offsets.preview import MovePreview
from icestream.rest.console.exchange import Asked, Console, Route, Table, rest
from icestream.rest.exchange import Answer
from icestream.rest.offsets import alter_offsets, entries_of, reset_offsets


def read(console: Console, asked: Asked) -> Answer:
    """As Kafka Connect's, and for a sink what stands beside each partition."""
    service, name = console.service, asked.connector
    found = service.offsets(name)
    positions = service.inspection.positions(name)
    return Answer(
        body={
            "state": service.status(name).state.value,
            "offsets": [{"partition": one.partition, "offset": _texts(one.offset)} for one in found],
            "partitions": None if positions is None else [_position(one) for one in positions],
        }
    )


def preview(console: Console, asked: Asked) -> Answer:
    """The numbers of a change, which the body has as `PATCH offsets` takes it; without a body, of a reset."""
    entries = entries_of(asked) if asked.body.strip() else None
    found = console.service.inspection.preview(asked.connector, entries)
    totals = {
        "again": sum(one.again for one in found),
        "skipped": sum(one.skipped for one in found),
        "gone": sum(one.gone for one in found),
    }
    return Answer(body={"partitions": [_preview(one) for one in found], "totals": totals})


def _position(one: PartitionPosition) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "beginning": str(one.beginning),
        "end": str(one.end),
        "resumes": str(one.resumes),
        "table": _text(one.in_targets),
        "group": _text(one.in_group),
    }


def _preview(one: MovePreview) -> dict[str, Any]:
    return {
        **_position(one.position),
        "from": str(one.position.resumes),
        "to": str(one.resumes),
        "again": one.again,
        "skipped": one.skipped,
        "gone": one.gone,
        "left": one.left,
    }


def _text(offset: int | None) -> str | None:
    return None if offset is None else str(offset)


def _texts(offset: Any) -> Any:
    """Whole numbers of a source's offset as texts, however deep."""
    if isinstance(offset, dict):
        return {key: _texts(value) for key, value in offset.items()}
    if isinstance(offset, list):
        return [_texts(value) for value in offset]
    return str(offset) if isinstance(offset, int) and not isinstance(offset, bool) else offset


ROUTES: Final[Table] = {
    ("GET", "offsets"): Route(read, Level.EDIT, waits_long=True),
    ("PATCH", "offsets"): Route(rest(alter_offsets), Level.EDIT, waits_long=True),
    ("DELETE", "offsets"): Route(rest(reset_offsets), Level.EDIT, waits_long=True),
    ("POST", "offsets/preview"): Route(preview, Level.EDIT, waits_long=True),
}
