"""Log lines: one each, with the connector, without secrets."""

from __future__ import annotations

import io
import logging
import re
import sys

import pytest

from icestream.logs import KEPT, FloodFilter, LineFormatter, configure, masked


@pytest.mark.parametrize(
    "key",
    [
        "iceberg.catalog.s3.secret-access-key",
        "iceberg.catalog.s3.access-key-id",
        "iceberg.catalog.jdbc.password",
        "iceberg.catalog.token",
        "iceberg.catalog.credential",
        "sasl.jaas.config",
        "consumer.override.sasl.jaas.config",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "value.converter.basic.auth.user.info",
        "my.api.key",
    ],
)
def test_secrets_are_hidden(key: str) -> None:
    assert masked({key: "hush"}) == {key: "[hidden]"}


@pytest.mark.parametrize(
    "key", ["key.converter", "iceberg.tables", "value.converter.schemas.enable", "topics"]
)
def test_the_rest_is_shown(key: str) -> None:
    assert masked({key: "x"}) == {key: "x"}


def test_secrets_in_addresses_are_hidden() -> None:
    shown = masked({"uri": "postgresql://user:hush@db/x", "url": "jdbc:x://db?user=a&password=hush&b=c"})
    assert shown == {
        "uri": "postgresql://user:[hidden]@db/x",
        "url": "jdbc:x://db?user=a&password=[hidden]&b=c",
    }


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("icestream", logging.INFO, "f.py", 1, message, None, info)
    made.connector = "sink"
    return made


def test_a_line_is_one_line() -> None:
    line = LineFormatter().format(record("first\nsecond", ValueError("bad\nvalue")))
    assert line.endswith(" INFO    icestream [sink] first second (ValueError: bad value)")
    assert "\n" not in line


def test_traces_are_for_debugging() -> None:
    try:
        raise ValueError("bad")
    except ValueError as error:
        line = LineFormatter(traces=True).format(record("failed", error))
    assert "Traceback" in line
    assert sys.exc_info() == (None, None, None)


def test_traces_follow_the_level_of_the_logger() -> None:
    logger = logging.getLogger("icestream")
    before = logger.level
    try:
        shown = []
        for level in (logging.INFO, logging.DEBUG):
            logger.setLevel(level)
            shown.append(
                "ValueError" in LineFormatter().format(record("x", ValueError("bad"))).partition("\n")[2]
            )
        assert shown == [False, True]
    finally:
        logger.setLevel(before)


def test_every_line_has_the_time_zone_and_the_logger() -> None:
    line = LineFormatter().format(record("hello"))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d INFO    icestream \[sink\] hello", line
    )


def test_control_characters_are_shown_not_obeyed() -> None:
    line = LineFormatter().format(record("a\x1b[2Jb\x00c\u202ed\x85INFO forged"))
    assert line.endswith(r"a\x1b[2Jb\x00c\u202ed INFO forged")


def passed(flood: FloodFilter, name: str, count: int, at: float, **more: object) -> list[str]:
    lines = []
    for number in range(count):
        made = logging.LogRecord(name, logging.WARNING, "f.py", 1, "refused %s", (number,), None)
        made.created = at
        vars(made).update(more)
        if flood.filter(made):
            lines.append(LineFormatter().format(made))
    return lines


def test_a_flood_of_lines_that_clients_cause_is_cut_and_said() -> None:
    flood = FloodFilter(most=20, seconds=10)
    first = passed(flood, "icestream.rest.connections", 100_000, 1000.0)
    assert len(first) == 20
    assert first[-1].endswith("refused 19 (more like this are left out for 10 seconds)")
    later = passed(flood, "icestream.rest.connections", 3, 1011.0)
    assert later[0].endswith("refused 0 (99,980 more lines like this were left out before)")
    assert len(later) == 3


def test_neither_jobs_nor_changes_are_left_out() -> None:
    flood = FloodFilter(most=20, seconds=10)
    assert len(passed(flood, "icestream.jobs.manager", 1000, 1000.0)) == 1000
    assert len(passed(flood, "icestream.audit", 1000, 1000.0, **{KEPT: True})) == 1000
    assert len(passed(flood, "icestream.audit", 1000, 1000.0)) == 20


def test_a_worker_that_logs_errors_only_still_tells_who_changed_what() -> None:
    root, audit = logging.getLogger(), logging.getLogger("icestream.audit")
    before = root.handlers[:], root.level, audit.level
    try:
        stream = io.StringIO()
        configure("ERROR", stream)
        audit.info("user=%s", "alice")
        logging.getLogger("icestream.a_job_that_nobody_asks").info("busy")
        assert stream.getvalue().endswith("INFO    icestream.audit user=alice\n")
    finally:
        root.handlers[:], audit.level = before[0], before[2]
        root.setLevel(before[1])
