"""Log lines: one each, with the connector, without secrets."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from icestream.deadlines import within
from icestream.logs import (
    KEPT,
    FloodFilter,
    JsonFormatter,
    LineFormatter,
    about,
    at_batch,
    conceal,
    configure,
    masked,
    of_worker,
)
from icestream.logs.stderr import ForeignLines


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


# -- whose work a line is about --


def said(form: logging.Formatter, **more: str) -> str:
    made = logging.LogRecord("icestream", logging.INFO, "f.py", 1, "hello", None, None)
    vars(made).update(more)
    return form.format(made)


@pytest.fixture
def of_this_worker() -> Iterator[None]:
    of_worker("10.0.0.7:8083")
    yield
    of_worker("")


@pytest.mark.usefixtures("of_this_worker")
def test_lines_name_worker_connector_and_batch_also_those_of_threads_that_help() -> None:
    told = [said(LineFormatter())]
    with about("orders"):
        told.append(said(LineFormatter()))
        at_batch("b1")
        told += [said(LineFormatter()), within(60, lambda: said(LineFormatter()), "a helper")]
        told.append(said(LineFormatter(), connector="another"))
        at_batch("")
        told.append(said(LineFormatter()))
    told.append(said(LineFormatter()))
    assert [re.sub("^.* icestream ", "", line) for line in told] == [
        "[10.0.0.7:8083] hello",
        "[10.0.0.7:8083|orders] hello",
        "[10.0.0.7:8083|orders|batch-b1] hello",
        "[10.0.0.7:8083|orders|batch-b1] hello",
        "[10.0.0.7:8083|another] hello",
        "[10.0.0.7:8083|orders] hello",
        "[10.0.0.7:8083] hello",
    ]


@pytest.mark.parametrize(
    "name", ["a] forged", "a|batch-x", "a\nINFO forged", "a\x85b", "a\u2028b", "ä b", '"']
)
def test_no_name_writes_a_line_or_a_bracket_of_its_own(name: str) -> None:
    line = said(LineFormatter(), connector=name)
    assert len(line.splitlines()) == 1
    assert json.loads(re.fullmatch(r".* icestream \[(.*)\] hello", line)[1]) == name  # type: ignore[index]
    line = said(JsonFormatter(), connector=name)
    assert len(line.splitlines()) == 1 and line.isascii()
    assert json.loads(line)["connector"] == name


def test_no_line_of_a_trace_looks_like_one_of_the_log() -> None:
    forged = "2026-11-15 10:14:02.123+01:00 ERROR   icestream forged"
    lines = LineFormatter(traces=True).format(record("failed", ValueError(f"bad\n{forged}"))).splitlines()
    assert len(lines) > 1
    assert all(line.startswith("    ") for line in lines[1:])


# -- JSON --


@pytest.mark.usefixtures("of_this_worker")
def test_an_object_has_the_same_fields_in_every_line() -> None:
    line = json.loads(JsonFormatter().format(record("first\nsecond", ValueError("bad\nvalue"))))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "INFO",
        "logger": "icestream",
        "message": "first\nsecond",
        "worker": "10.0.0.7:8083",
        "connector": "sink",
        "batch": "",
        "exception": "ValueError: bad value",
    }


def test_errors_have_their_trace() -> None:
    made = record("failed", ValueError("bad"))
    made.levelno = logging.ERROR
    assert "ValueError: bad" in json.loads(JsonFormatter().format(made))["trace"]


def test_an_object_shows_no_secret_also_none_that_has_to_be_escaped() -> None:
    secret = 'hu"sh\\h'
    conceal({secret: "${vault:it}"})
    try:
        raise ValueError(f"the password is {secret}")
    except ValueError as error:
        made = record(secret, error)
    made.levelno, made.connector = logging.ERROR, secret
    line = JsonFormatter().format(made)
    assert "sh" + "\\" * 2 + "h" not in line
    told = json.loads(line)
    assert told["message"] == told["connector"] == "${vault:it}"
    assert "hu" not in told["trace"] and "hu" not in told["exception"]


# -- what others write --


def taken(*lines: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    foreign = ForeignLines(lambda made: found.append(json.loads(JsonFormatter().format(made))))
    for line in lines:
        foreign.take(line)
    foreign.flush()
    return [{key: one[key] for key in ("level", "logger", "message", "trace") if key in one} for one in found]


def test_lines_of_spark_have_their_level_and_their_trace() -> None:
    assert taken(
        "26/11/16 15:20:01 ERROR Executor: Exception in task 0.0 in stage 1.0 (TID 1)",
        "java.lang.IllegalStateException: 100 %s",
        "\tat org.apache.spark.Task.run(Task.scala:1)",
        "Caused by: java.io.IOException: gone",
        "26/11/16 15:20:02 WARN Utils: Your hostname resolves to a loopback address",
    ) == [
        {
            "level": "ERROR",
            "logger": "spark.Executor",
            "message": "Exception in task 0.0 in stage 1.0 (TID 1)",
            "trace": "java.lang.IllegalStateException: 100 %s\n\tat org.apache.spark.Task.run(Task.scala:1)\n"
            "Caused by: java.io.IOException: gone",
        },
        {
            "level": "WARNING",
            "logger": "spark.Utils",
            "message": "Your hostname resolves to a loopback address",
        },
    ]


def test_other_lines_are_what_they_are() -> None:
    forged = '{"time": "2026", "level": "ERROR", "logger": "icestream"}'
    assert taken("Picked up JAVA_TOOL_OPTIONS: -X", "", "WARNING: Using incubator modules", forged) == [
        {"level": "INFO", "logger": "stderr", "message": "Picked up JAVA_TOOL_OPTIONS: -X"},
        {"level": "WARNING", "logger": "stderr", "message": "Using incubator modules"},
        {"level": "INFO", "logger": "stderr", "message": forged},
    ]


def test_all_that_a_process_writes_is_a_line_of_the_log() -> None:
    code = (
        "import logging, os, subprocess, sys, warnings; from icestream import logs;"
        "logs.configure_process('INFO', logs.Logging('json', 'w')); logs.conceal({'hush-hush': '***'});"
        "subprocess.run(['sh', '-c', 'echo of a child; echo hush-hush >&2']);"
        "warnings.warn('old'); logging.getLogger('icestream').warning('ours'); print('printed');"
        "raise SystemExit('the end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    told = {line["message"]: line["worker"] for line in map(json.loads, done.stderr.splitlines())}
    assert {"of a child", "***", "ours", "printed", "the end"} <= told.keys()
    assert set(told.values()) == {"w"}
