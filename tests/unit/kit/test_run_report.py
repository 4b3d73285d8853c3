"""What a run says at its end."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.kit.run_report import skips, times


def report(
    nodeid: str, when: Literal["setup", "call"], seconds: float, reason: Any = None
) -> pytest.TestReport:
    outcome: Literal["passed", "skipped"] = "skipped" if reason else "passed"
    return pytest.TestReport(nodeid, ("", None, ""), {}, outcome, reason, when, duration=seconds)


def test_times_of_tests_and_parts() -> None:
    lines = times(
        [
            report("tests/unit/a/test_a.py::test_x[/]", "setup", 0.5),
            report("tests/unit/a/test_a.py::test_x[/]", "call", 1.0),
            report("tests/unit/b/test_b.py::test_y", "call", 0.25),
            report("tests/test_docs.py::test_z", "call", 2.0),
        ]
    )
    assert [" ".join(line.split()) for line in lines] == [
        "slowest 3 tests, in seconds (of which setup and teardown):",
        "2.00 (0.00) tests/test_docs.py::test_z",
        "1.50 (0.50) tests/unit/a/test_a.py::test_x[/]",
        "0.25 (0.00) tests/unit/b/test_b.py::test_y",
        "time of each part, in seconds of all processes together (of which setup and teardown):",
        "2.0 (0.0) tests/test_docs.py: 1 test",
        "1.8 (0.5) tests/unit: 2 tests",
    ]


def test_skipped_tests_and_the_command_that_installs_what_they_need() -> None:
    chromium = "missing chromium: apt-get install chromium"
    reasons = [chromium, chromium, "missing jq: apt-get install jq"]
    reasons += ["missing the API server: run make kubernetes", "there is no /proc"]
    assert list(skips(reasons)) == [
        "5 tests skipped:",
        "  2 tests: missing chromium",
        "  1 test: missing jq",
        "  1 test: missing the API server: run make kubernetes",
        "  1 test: there is no /proc",
        "To run those that lack a program of Debian: apt-get install chromium jq",
    ]
    assert list(skips([])) == []
