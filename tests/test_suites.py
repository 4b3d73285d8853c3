"""Every connector of this package is in the behaviour suite and in the crash suite: none comes without them.

A sink is a subject of `tests/behaviours/test_sinks.py` and a kind of `tests/crashes/test_sinks.py`; a source
is an example of `tests/source_examples.py`, which both suites of sources run.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from icestream.api.connector import ConnectorPlugin
from icestream.plugins import find_connector
from tests.behaviours.test_sinks import SUBJECTS
from tests.crashes.test_sinks import DATABASES, KINDS
from tests.source_examples import EXAMPLES

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


@functools.cache
def entry_points() -> dict[str, str]:
    """As the package declares them, not as it was installed."""
    project = tomllib.loads(_PROJECT.read_text())["project"]
    found: dict[str, str] = project["entry-points"]["icestream.connectors"]
    return found


def plugin_of(entry_point: str) -> ConnectorPlugin:
    module, _, name = entry_points()[entry_point].partition(":")
    loaded: ConnectorPlugin = getattr(__import__(module, fromlist=[name]), name)()
    return loaded


def is_among(entry_point: str, names: Iterable[str]) -> bool:
    """`jdbc-sink` is there as `jdbc`, or `jdbc-postgresql`; so is the same sink by other names."""
    product = entry_point.partition("-")[0]
    return any(name == product or name.startswith(f"{product}-") for name in names)


def of_kind(kind: str) -> Sequence[str]:
    return [name for name in entry_points() if plugin_of(name).kind == kind]


@pytest.mark.parametrize("sink", of_kind("sink"))
def test_every_sink_passes_both_suites(sink: str) -> None:
    assert is_among(sink, SUBJECTS), f"add '{sink}' to SUBJECTS of tests/behaviours/test_sinks.py"
    assert is_among(sink, [*KINDS, *DATABASES]), f"add '{sink}' to KINDS of tests/crashes/test_sinks.py"


@pytest.mark.parametrize("source", of_kind("source"))
def test_every_source_passes_both_suites(source: str) -> None:
    assert is_among(source, EXAMPLES), f"add '{source}' to EXAMPLES of tests/source_examples.py"


@pytest.mark.parametrize("name", entry_points())
def test_every_connector_has_a_page_with_its_settings_and_an_example(name: str) -> None:
    """What is between the marks is made by `make docs` and compared by tests/test_docs.py; examples run in
    tests/integration/test_connector_pages.py, test_iceberg_examples.py and test_delta.py."""
    pages = {path: path.read_text() for path in (_PROJECT.parent / "docs" / "connectors").glob("*.md")}
    plugin = plugin_of(name)
    found = [
        text
        for text in pages.values()
        for shown in re.findall(r"<!-- settings: (\S+) -->", text)
        if type(find_connector(shown).plugin) is type(plugin)
    ]
    assert len(found) == 1, f"one page of docs/connectors has the settings of {plugin.classes[0].name}"
    assert "<!-- example: " in found[0]


def test_each_is_found_by_its_java_name() -> None:
    for name in entry_points():
        for java in plugin_of(name).classes:
            assert type(find_connector(java.name).plugin) is type(plugin_of(name))
