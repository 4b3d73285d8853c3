"""Log lines: one each, with the connector, without secrets."""

from __future__ import annotations

import logging
import sys

import pytest

from icestream.logs import LineFormatter, masked


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
    assert line.endswith("INFO    [sink] first second (ValueError: bad value)")
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
