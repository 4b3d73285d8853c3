"""Records by kind, number and seed, with broken ones between them on request. Needs no Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from icestream.embedded.minio_logs.draws import BASE, Draw, draws
from icestream.embedded.minio_logs.logs import api_log, audit_log, error_log


class Kind(StrEnum):
    API = "api"
    ERROR = "error"
    AUDIT = "audit"


_WRITERS: Final[Mapping[Kind, Callable[[Draw], str]]] = {
    Kind.API: api_log,
    Kind.ERROR: error_log,
    Kind.AUDIT: audit_log,
}
_WRONG_TYPE: Final[Mapping[Kind, bytes]] = {
    Kind.API: b'{"version":"1","time":"2026-11-01T00:00:00Z","callInfo":{"rx":"many"}}',
    Kind.ERROR: b'{"version":"1","time":"2026-11-01T00:00:00Z","trace":"none"}',
    Kind.AUDIT: b'{"version":"1","time":"2026-11-01T00:00:00Z","tags":7}',
}


def generate(
    kind: str, count: int, seed: int = 0, start: int = 0, *, bad: int = 0, base: datetime = BASE
) -> Iterator[bytes]:
    """The records start … start+count-1 of a seed; `bad` of the `count` are broken, at `bad_positions`.

    The same arguments give the same bytes. A record is found again by `request_id(seed, index)`: in
    `callInfo.requestID` (api), `requestID` (audit) or `tags.requestID` (error).
    """
    chosen = Kind(kind)
    write = _WRITERS[chosen]
    broken = {position: which for which, position in enumerate(bad_positions(count, bad))}
    for position, draw in enumerate(draws(chosen, seed, start, count, base)):
        record = write(draw).encode()
        yield record if position not in broken else _broken(chosen, record, broken[position])


def bad_positions(count: int, bad: int) -> list[int]:
    """Where the broken ones are among `count` records: spread evenly, none at the very ends."""
    if not 0 <= bad <= count:
        raise ValueError(f"{bad} of {count} records cannot be bad")
    return [(2 * which + 1) * count // (2 * bad) for which in range(bad)]


def _broken(kind: Kind, record: bytes, which: int) -> bytes:
    ways = (
        record[: len(record) // 2],
        record.replace(b'"version":"1"', b'"version":"\xff\xfe"', 1),
        b"[" + record + b"]",
        b"",
        _WRONG_TYPE[kind],
    )
    return ways[which % len(ways)]
