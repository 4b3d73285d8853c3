"""What `/admin/loggers` answers, compared with Kafka Connect 4.3.1's answers to the same requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from icestream.api.errors import NotFoundError
from icestream.cluster.logger_levels import LoggerLevels, level_name, level_number, levels_problem
from icestream.logs import LoggerLevel


@pytest.fixture
def levels() -> Iterator[LoggerLevels]:
    """With every logger put back to the level it had."""
    before = {
        name: it.level
        for name, it in logging.root.manager.loggerDict.items()
        if isinstance(it, logging.Logger)
    }
    root = logging.root.level
    logging.root.setLevel(logging.INFO)
    yield LoggerLevels(clock=lambda: 1794749718.308)
    logging.root.setLevel(root)
    for name, it in logging.root.manager.loggerDict.items():
        if isinstance(it, logging.Logger):
            it.setLevel(before.get(name, logging.NOTSET))


def test_a_new_name_comes_to_be_when_it_is_set(levels: LoggerLevels) -> None:
    with pytest.raises(NotFoundError, match=r"^Logger new\.xa\.b not found\.$"):
        levels.level("new.xa.b")
    assert levels.set_level("new.xa.b", "WARN") == ["new.xa.b"]
    assert levels.level("new.xa.b") == LoggerLevel("WARN", 1794749718308)
    with pytest.raises(NotFoundError):
        levels.level("new.xa")


def test_a_name_stands_for_all_that_begin_with_it(levels: LoggerLevels) -> None:
    levels.set_level("fam.xa.b", "WARN")
    assert levels.set_level("fam.x", "debug") == ["fam.x", "fam.xa.b"]
    assert levels.set_level("fam.x", "DEBUG") == []
    assert levels.set_level("fam.xa.b.c", "debug") == []
    assert levels.set_level("fam.xa", "trace") == ["fam.xa", "fam.xa.b", "fam.xa.b.c"]
    assert levels.level("fam.xa.b.c").level == "TRACE"


def test_root_is_all_of_them_whatever_its_case(levels: LoggerLevels) -> None:
    levels.set_level("quiet.one", "FATAL")
    assert levels.level("ROOT") == levels.level("root") == LoggerLevel("INFO", None)
    changed = levels.set_level("Root", "error")
    assert {"root", "quiet.one"} <= set(changed)
    assert changed == sorted(changed)
    assert {it.level for it in levels.levels().values()} == {"ERROR"}
    assert levels.level("root").last_modified == 1794749718308


def test_all_are_listed_by_name_with_the_level_that_holds(levels: LoggerLevels) -> None:
    logging.getLogger("listed.plain")
    shown = levels.levels()
    assert shown["listed.plain"] == LoggerLevel("INFO", None)
    assert shown["root"] == LoggerLevel("INFO", None)
    assert list(shown) == sorted(shown)


def test_names_of_java_classes_move_ours(levels: LoggerLevels) -> None:
    ours = logging.getLogger("icestream.rest.anything")
    changed = levels.set_level("org.apache.kafka.connect.runtime.rest", "DEBUG")
    assert {"org.apache.kafka.connect.runtime.rest", "icestream.rest", "icestream.rest.anything"} <= set(
        changed
    )
    assert ours.isEnabledFor(logging.DEBUG)
    assert "icestream.jobs" not in changed
    assert levels.level("org.apache.kafka.connect.runtime.rest.RestServer").level == "DEBUG"


@pytest.mark.parametrize("level", ["bogus", "WARNING", ""])
def test_a_level_that_log4j_lacks_is_not_found(levels: LoggerLevels, level: str) -> None:
    with pytest.raises(NotFoundError, match=rf"^invalid log level '{level}'\.$"):
        levels.set_level("x", level)


@pytest.mark.parametrize("level", ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"])
def test_levels_translate_both_ways(level: str) -> None:
    assert level_name(level_number(level.lower())) == level


def test_numbers_between_levels_have_a_name() -> None:
    assert [level_name(number) for number in (0, 7, 15, 35, 99)] == ["ALL", "TRACE", "DEBUG", "WARN", "OFF"]


def test_a_list_of_levels_is_set_in_its_order(levels: LoggerLevels) -> None:
    levels.set_levels(" listed.a=WARN , listed.a.b = debug,")
    assert (levels.level("listed.a").level, levels.level("listed.a.b").level) == ("WARN", "DEBUG")


@pytest.mark.parametrize("named", ["a", "a=", "=INFO", "a=LOUD", "a=INFO,b"])
def test_a_list_that_is_none_is_told(named: str) -> None:
    assert "is not logger=level" in (levels_problem(named) or "")
    assert levels_problem("a=INFO, b=warn") is levels_problem("") is None


def test_off_lets_nothing_through(levels: LoggerLevels) -> None:
    levels.set_level("silent", "off")
    assert not logging.getLogger("silent").isEnabledFor(logging.CRITICAL)
