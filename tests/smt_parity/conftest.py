"""One JVM with the real classes for all tests of this folder; a line per subject ends the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.smt_parity.harness import Parity, Tally
from tests.smt_parity.java_side import running_java

TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def parity(request: pytest.FixtureRequest) -> Iterator[Parity]:
    tally = request.config.stash.setdefault(TALLY, Tally())
    with running_java() as java:
        yield Parity(java, tally)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.network)
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = terminalreporter.config.stash.get(TALLY, None)
    for line in tally.lines() if tally is not None else ():
        terminalreporter.write_line(line)
