"""What is read next, as SQL; and the hour that a clock shows twice."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from icestream.connectors.jdbc.source.offsets import Position, from_offset, to_offset
from icestream.connectors.jdbc.source.windows import Cursors, Window, select_newest, select_rows, settled

NUMBER = Cursors(number='"id"')
TIMESTAMP = Cursors(timestamp='"at"', literal=lambda at: f"T{at}", keys=('"a"', '"b"'))
BOTH = Cursors(number='"id"', timestamp='"at"', literal=lambda at: f"T{at}")
BULK = Cursors(keys=('"id"',))


@pytest.mark.parametrize(
    ("cursors", "window", "expected"),
    [
        (NUMBER, Window(Position(), number=9), 'WHERE "id" <= 9 ORDER BY "id" LIMIT 5'),
        (NUMBER, Window(Position(3), number=9), 'WHERE "id" > 3 AND "id" <= 9 ORDER BY "id" LIMIT 5'),
        (
            TIMESTAMP,
            Window(Position(timestamp=3), timestamp=9),
            'WHERE "at" > T3 AND "at" <= T9 ORDER BY "at", "a", "b" LIMIT 5',
        ),
        (
            TIMESTAMP,
            Window(Position(timestamp=3, part=(4, (1, "x"))), timestamp=9),
            'WHERE "at" >= T4 AND (("at" = T4 AND ("a", "b") > (1, \'x\')) OR "at" > T4) AND "at" <= T9 '
            'ORDER BY "at", "a", "b" LIMIT 5',
        ),
        (
            BOTH,
            Window(Position(7, 3), timestamp=9),
            'WHERE "at" >= T3 AND (("at" = T3 AND "id" > 7) OR "at" > T3) AND "at" <= T9 '
            'ORDER BY "at", "id" LIMIT 5',
        ),
        (BULK, Window(Position()), 'ORDER BY "id" LIMIT 5'),
        (BULK, Window(Position(dump_key=(7,))), 'WHERE "id" > 7 ORDER BY "id" LIMIT 5'),
    ],
)
def test_what_is_read(cursors: Cursors, window: Window, expected: str) -> None:
    assert select_rows(["x"], "t", window, cursors, 5) == f"SELECT x FROM t {expected}"


def test_a_suffix_takes_the_place_of_the_limit() -> None:
    statement = select_rows(["x"], "t", Window(Position(), number=9), NUMBER, 5, "FOR SHARE")
    assert statement.endswith('ORDER BY "id" FOR SHARE')


def test_up_to_where() -> None:
    assert select_newest("t", Position(3), NUMBER) == 'SELECT MAX("id") FROM t WHERE "id" > 3'
    assert select_newest("t", Position(), BOTH, 9) == 'SELECT MAX("at") FROM t WHERE "at" < T9'


@pytest.mark.parametrize(
    "position",
    [
        Position(5),
        Position(5, 1704067200_123456789),
        Position(timestamp=-1),
        Position(timestamp=3, part=(4, (1, "x"))),
        Position(dumps=2, dump_key=("ü",)),
        Position(dumps=2, dumped_at=9),
    ],
)
def test_positions_come_back(position: Position) -> None:
    offset = to_offset(position)
    assert from_offset(offset) == position
    assert all(isinstance(value, int | str) for value in offset.values()), "Kafka Connect refuses others"


def _nanoseconds(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp()) * 1_000_000_000


@pytest.mark.parametrize(
    ("now", "least"),
    [
        ("2026-11-01T04:59:00+00:00", "2026-11-01T04:59:00+00:00"),  # 00:59 in New York
        ("2026-11-01T05:00:00+00:00", "2026-11-01T05:00:00+00:00"),  # 01:00, for the first time
        ("2026-11-01T05:50:00+00:00", "2026-11-01T05:00:00+00:00"),  # 01:50, and in ten minutes 01:00 again
        ("2026-11-01T06:10:00+00:00", "2026-11-01T06:10:00+00:00"),  # 01:10, for the second time
        ("2026-03-08T06:59:00+00:00", "2026-03-08T06:59:00+00:00"),  # one minute before the hour that is not
        ("2026-07-01T00:00:00+00:00", "2026-07-01T00:00:00+00:00"),
    ],
)
def test_rows_of_an_hour_that_comes_again_wait_for_its_end(now: str, least: str) -> None:
    assert settled(_nanoseconds(now), ZoneInfo("America/New_York")) == _nanoseconds(least)
    assert settled(_nanoseconds(now), dt.UTC) == _nanoseconds(now)
