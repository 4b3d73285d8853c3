"""`icestream plugins` and `icestream loggers`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Cli = Callable[..., Any]
SINK = "org.apache.iceberg.connect.IcebergSinkConnector"


def test_plugins_are_a_table(cli: Cli) -> None:
    ran = cli("plugins")
    assert ran.code == 0
    assert ran.rows[0] == "class type version"
    assert any(row.startswith(f"{SINK} sink ") for row in ran.rows)
    listed = json.loads(cli("plugins", "-o", "json").out)
    assert SINK in [plugin["class"] for plugin in listed]
    assert {plugin["type"] for plugin in listed} <= {"sink", "source"}


def test_all_plugins_are_more_than_connectors(cli: Cli) -> None:
    everything = json.loads(cli("plugins", "--all", "-o", "json").out)
    assert {plugin["type"] for plugin in everything} > {"sink", "converter"}


def test_a_plugin_shows_its_keys(cli: Cli) -> None:
    ran = cli("plugins", "IcebergSink")
    assert ran.rows[0] == "key type default importance documentation"
    keys = {row.split()[0]: row.split()[1:4] for row in ran.rows[1:]}
    assert keys["connector.class"] == ["string", "(required)", "high"]
    assert keys["tasks.max"] == ["int", "1", "high"]
    assert keys["topics"][1] == "-"
    shown = json.loads(cli("plugins", "IcebergSink", "-o", "json").out)
    assert set(keys) == {key["name"] for key in shown}


@pytest.mark.usefixtures("toys")
def test_connectors_of_other_packages_are_shown_like_ours(cli: Cli) -> None:
    assert "com.example.JsonFolderSinkConnector sink 1.0" in cli("plugins").rows
    assert any(row.startswith("topic string (required)") for row in cli("plugins", "CounterSource").rows)


def test_an_unknown_plugin(cli: Cli) -> None:
    ran = cli("plugins", "no/such")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("icestream: Unknown plugin no/such")


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("icestream.tests.talkative")
    yield found
    found.setLevel(logging.NOTSET)
    logging.getLogger("icestream.tests").setLevel(logging.NOTSET)


def test_loggers_are_shown_and_set(cli: Cli, logger: logging.Logger) -> None:
    ran = cli("loggers", "icestream.tests", "debug")
    assert ran.code == 0
    assert "logger icestream.tests.talkative set to DEBUG" in ran.rows
    assert logger.getEffectiveLevel() == logging.DEBUG
    table = cli("loggers")
    assert table.rows[0] == "logger level last modified"
    assert any(row.startswith("icestream.tests DEBUG 20") for row in table.rows)
    assert any(row.startswith("root ") for row in table.rows)
    one = cli("loggers", "icestream.tests")
    assert one.rows[1].startswith("icestream.tests DEBUG ")
    assert json.loads(cli("loggers", "icestream.tests", "-o", "json").out)["level"] == "DEBUG"
    assert "icestream.tests" in json.loads(cli("loggers", "-o", "json").out)
    changed = json.loads(cli("loggers", "icestream.tests", "INFO", "-o", "json").out)
    assert "icestream.tests" in changed


def test_loggers_of_a_cluster(cli: Cli, logger: logging.Logger) -> None:
    ran = cli("loggers", "icestream.tests", "ERROR", "--cluster")
    assert (ran.code, ran.out) == (0, "logger icestream.tests set to ERROR\n")
    assert cli("loggers", "--cluster").code == 2


def test_a_level_that_is_none(cli: Cli) -> None:
    ran = cli("loggers", "root", "loud")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
