"""Handlers under `/connectors/{connector}/offsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from icestream.api.offset_admin import OffsetEntry
from icestream.cluster.service import ConnectorService
from icestream.rest.errors import BadRequest, MalformedBody
from icestream.rest.exchange import Answer, Call, Handler, Number

_DEEPEST = 100
_LONGEST_NUMBER = 400
_SHAPE = 'write {"offsets": [{"partition": {...}, "offset": {...}}]}'


def read_offsets(service: ConnectorService, call: Call) -> Answer:
    found = service.offsets(call.connector)
    return Answer(
        body={"offsets": [{"partition": entry.partition, "offset": entry.offset} for entry in found]}
    )


def alter_offsets(service: ConnectorService, call: Call) -> Answer:
    entries = entries_of(call)
    return Answer(body={"message": service.alter_offsets(call.connector, entries)})


def reset_offsets(service: ConnectorService, call: Call) -> Answer:
    return Answer(body={"message": service.reset_offsets(call.connector)})


def entries_of(call: Call) -> list[OffsetEntry]:
    document = _object(call.json_object(), {"offsets"}, "the body")
    listed = document.get("offsets")
    if listed is None or listed == []:
        raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(listed, list):
        raise MalformedBody(f"'offsets' is not a list; {_SHAPE}")
    return [_entry(item) for item in listed]


def _entry(item: object) -> OffsetEntry:
    entry = _object(item, {"partition", "offset"}, "an entry of 'offsets'")
    partition, offset = (_optional_map(entry.get(key), key) for key in ("partition", "offset"))
    # What a missing partition means is for the connector to say.
    return OffsetEntry(cast(Mapping[str, Any], partition), offset)


def _object(value: object, known: set[str], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedBody(f"{what} is not an object; {_SHAPE}")
    unknown = [key for key in value if key not in known]
    if unknown:
        raise MalformedBody(f"Unrecognized field '{unknown[0]}' in {what}; {_SHAPE}")
    return value


def _optional_map(value: object, key: str) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise MalformedBody(f"'{key}' of an entry is not an object; {_SHAPE}")
    return None if value is None else {name: _plain(item, 1) for name, item in value.items()}


def _plain(value: Any, depth: int) -> Any:
    """Numbers as numbers again."""
    if isinstance(value, Number):
        return _number(value)
    if depth > _DEEPEST:
        raise BadRequest(f"An entry of 'offsets' is nested deeper than {_DEEPEST} levels; {_SHAPE}")
    if isinstance(value, dict):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    return value


def _number(text: Number) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise BadRequest(f"A number of 'offsets' has {len(text)} digits; at most {_LONGEST_NUMBER} are taken")
    return int(text) if text.lstrip("-").isdigit() else float(text)


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/connectors/{connector}/offsets"): read_offsets,
    ("PATCH", "/connectors/{connector}/offsets"): alter_offsets,
    ("DELETE", "/connectors/{connector}/offsets"): reset_offsets,
}
