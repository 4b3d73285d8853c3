"""Which offsets FileStreamSource can be given by hand, in the words of the Java connector. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icestream.api.config import Config
from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry


def refuse_bad_offsets(config: Config, entries: Sequence[OffsetEntry]) -> None:
    """BadOffsets names what is wrong. Entries may be removed whatever they are."""
    for entry in entries:
        _refuse_nested(entry.partition)
        _refuse_nested(entry.offset)
    if not config.get("file", "").strip():
        raise BadOffsets(
            "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is "
            "used for input and offsets are not tracked."
        )
    for entry in entries:
        if entry.offset is not None:
            _refuse_bad_position(entry.offset)
            _refuse_bad_partition(entry.partition)


def _refuse_nested(given: Mapping[str, Any] | None) -> None:
    for field, value in (given or {}).items():
        if isinstance(value, list | dict):
            kind = "ARRAY" if isinstance(value, list) else "MAP"
            raise BadOffsets(
                f"Offsets may only contain primitive types as values, but field {field} contains {kind}"
            )


def _refuse_bad_position(offset: Mapping[str, Any]) -> None:
    if "position" not in offset:
        raise BadOffsets("Offset objects should either be null or contain the key 'position'")
    position = offset["position"]
    if not isinstance(position, int) or isinstance(position, bool):
        raise BadOffsets("The value for the 'position' key in the offset is expected to be a Long value")
    if position < 0:
        raise BadOffsets("The value for the 'position' key in the offset should be a non-negative value")


def _refuse_bad_partition(partition: Mapping[str, Any] | None) -> None:
    if partition is None:
        raise BadOffsets("Partition objects cannot be null")
    if "filename" not in partition:
        raise BadOffsets("Partition objects should contain the key 'filename'")
