"""What one record is made from: an id, a time, and bytes that look random. Used by every kind of log.

No `random`: record 1,000,000 must not need the 999,999 before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

BASE: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""Where the times of the records end, unless told."""

SPAN: Final = timedelta(hours=48)
_RECORDS_PER_SECOND: Final = 2
_MASK: Final = 2**64 - 1
_STRIDE: Final = 0x9E3779B97F4A7C15
"""Odd, so that the ids of one seed are all different."""

NODES: Final = tuple(f"minio-source{number}:9000" for number in range(1, 5))
BUCKETS: Final = (
    "analytics-events",
    "app-uploads",
    "backup-nightly",
    "billing-exports",
    "image-thumbnails",
    "ml-features",
    "sensor-raw",
    "web-assets",
)
USERS: Final = (
    "svc-ingest",
    "svc-backup",
    "svc-report",
    "ana.ruiz",
    "j.okafor",
    "li.wei",
    "m.haddad",
    "svc-web",
)


class Draw(NamedTuple):
    request_id: str
    time: str
    day: str
    """The day of `time` as YYYY/MM/DD."""
    octets: bytes
    """64 of them; each kind of log takes its choices from here."""
    hex: str
    """The same as 128 hexadecimal digits."""


def draws(stream: str, seed: int, start: int, count: int, base: datetime) -> Iterator[Draw]:
    """The draws of records start … start+count-1; times run forward through the two days before `base`."""
    keyed = hashlib.blake2b(key=f"{stream}:{seed}".encode(), digest_size=64)
    minutes = _minutes(base)
    offset = _offset(seed)
    per_minute = 60 * _RECORDS_PER_SECOND
    per_span = len(minutes) * per_minute
    for index in range(start, start + count):
        hashed = keyed.copy()
        hashed.update(index.to_bytes(8))
        octets = hashed.digest()
        minute, half = divmod(index % per_span, per_minute)
        second, part = divmod(half, _RECORDS_PER_SECOND)
        # Odd, so that the last digit is not a zero, which Go would leave out.
        nanos = (
            part * 1_000_000_000 + int.from_bytes(octets[-4:]) % 1_000_000_000
        ) // _RECORDS_PER_SECOND | 1
        stem, day = minutes[minute]
        yield Draw(
            f"{(index * _STRIDE + offset) & _MASK:016X}",
            f"{stem}{second:02d}.{nanos:09d}Z",
            day,
            octets,
            octets.hex(),
        )


def request_id(seed: int, index: int) -> str:
    """The unique id of record `index`, as it is found in the table."""
    return f"{(index * _STRIDE + _offset(seed)) & _MASK:016X}"


def _offset(seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest())


def _minutes(base: datetime) -> list[tuple[str, str]]:
    first = base.astimezone(UTC).replace(second=0, microsecond=0) - SPAN
    count = int(SPAN.total_seconds()) // 60
    stamps = [first + timedelta(minutes=minute) for minute in range(count)]
    return [(f"{stamp:%Y-%m-%dT%H:%M:}", f"{stamp:%Y/%m/%d}") for stamp in stamps]
