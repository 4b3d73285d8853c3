"""A pytest plugin: the end of a run names the slowest tests, the time of each part, and what was skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from tests.kit.programs import INSTALL

_SLOWEST: Final = 20
_MISSING: Final = re.compile(r"missing (?P<what>[^:]+): (?P<how>.+)", re.DOTALL)
_NO_REASON: Final = ("", "Skipped", "unconditional skip")


@dataclass
class Time:
    """Of a test, or of a part of the tests."""

    tests: int = 0
    seconds: float = 0.0
    of_fixtures: float = 0.0
    """How much of it was setup and teardown."""

    def add(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        if report.when != "call":
            self.of_fixtures += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in times(_reports(terminalreporter)):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_terminal_summary")
def pytest_end_of_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """After the names of the tests that failed."""
    yield
    for line in skips(_reasons(_reports(terminalreporter))):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and _reason(report) in _NO_REASON:
        report.outcome = "failed"
        report.longrepr = "this test was skipped without a reason; say why, or what is missing"
    return report


def _reports(terminalreporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    every = (one for reports in terminalreporter.stats.values() for one in reports)
    return [one for one in every if isinstance(one, pytest.TestReport)]


def times(reports: Sequence[pytest.TestReport]) -> Iterator[str]:
    tests: dict[str, Time] = {}
    for report in reports:
        tests.setdefault(report.nodeid, Time(1)).add(report)
    parts: dict[str, Time] = {}
    for name, time in tests.items():
        part = parts.setdefault(_part(name), Time())
        part.tests += time.tests
        part.seconds += time.seconds
        part.of_fixtures += time.of_fixtures
    if len(tests) < 2:
        return
    yield f"slowest {min(_SLOWEST, len(tests))} tests, in seconds (of which setup and teardown):"
    slowest = sorted(tests.items(), key=lambda item: -item[1].seconds)
    for name, time in slowest[:_SLOWEST]:
        yield f"{time.seconds:9.2f} {f'({time.of_fixtures:.2f})':>10}  {name}"
    yield "time of each part, in seconds of all processes together (of which setup and teardown):"
    for name, time in sorted(parts.items(), key=lambda item: -item[1].seconds):
        yield f"{time.seconds:9.1f} {f'({time.of_fixtures:.1f})':>10}  {name}: {_count(time.tests)}"


def _part(nodeid: str) -> str:
    """The folder below `tests/`, or the file that is there itself."""
    return "/".join(nodeid.partition("::")[0].split("/")[:2])


def skips(reasons: Iterable[str]) -> Iterator[str]:
    counts = Counter(reasons)
    if not counts:
        return
    packages: set[str] = set()
    yield f"{_count(counts.total())} skipped:"
    for reason, count in counts.most_common():
        missing = _MISSING.fullmatch(reason)
        if missing and missing["how"].startswith(INSTALL):
            packages.update(missing["how"].removeprefix(INSTALL).split())
            reason = f"missing {missing['what']}"
        yield f"  {_count(count)}: {reason}"
    if packages:
        yield f"To run those that lack a program of Debian: {INSTALL}{' '.join(sorted(packages))}"


def _reasons(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    return (_reason(one) for one in reports if one.skipped and not hasattr(one, "wasxfail"))


def _reason(report: pytest.TestReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ").strip()


def _count(tests: int) -> str:
    return f"{tests:,} test{'' if tests == 1 else 's'}"
