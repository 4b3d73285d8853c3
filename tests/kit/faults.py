"""For tests that look at many files at once: one test, and one list of all that is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import pytest

_MOST_LINES_OF_A_DIFF = 30


def assert_no_faults(faults: Iterable[str], how_to_correct: str = "") -> None:
    """Fail with every fault on a line of its own."""
    found = list(faults)
    if found:
        count = f"{len(found)} fault{'s' if len(found) > 1 else ''}"
        pytest.fail(
            "\n".join([f"{count}:", *found, *([how_to_correct] if how_to_correct else [])]), pytrace=False
        )


def difference(name: str, found: str, expected: str) -> Iterable[str]:
    """One fault with the lines that differ, or none."""
    if found == expected:
        return
    lines = list(
        difflib.unified_diff(found.splitlines(), expected.splitlines(), name, "expected", n=0, lineterm="")
    )
    left_out = len(lines) - _MOST_LINES_OF_A_DIFF
    shown = [*lines[:_MOST_LINES_OF_A_DIFF], *([f"… and {left_out} more lines"] if left_out > 0 else [])]
    yield "\n".join(shown)
