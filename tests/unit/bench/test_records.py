"""`make bench-records` runs, and has a figure for each of its cases; which one is not for a test."""

from __future__ import annotations

from bench.one_core import CHUNK_ROWS
from bench.record_kinds import KINDS
from bench.records import measure


def test_each_case_is_measured() -> None:
    results = measure(CHUNK_ROWS, rounds=1)
    assert len(results) == len(KINDS) + 4
    assert all(one.speed.a_second > 0 for one in results)
