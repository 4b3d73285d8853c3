"""JSON that is valid, and that no reader could take apart: refused before anybody relies on it.

Called by the reader of JSON without schemas for every chunk, so it looks at long values only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from icestream.records.payloads import Payloads

_DEEPEST: Final = 910
"""Levels. Jackson takes 1000; so do the decoders, less what is on Python's stack already when they begin."""
_LONGEST: Final = 1000
"""Digits of a number, as in Jackson."""
_TOO_DEEP: Final = f"Document nesting depth ({_DEEPEST + 1}) exceeds the maximum allowed ({_DEEPEST})"
_TOO_LONG: Final = f"Number value length exceeds the maximum allowed ({_LONGEST})"
_STEP: Final = 100
_DIGITS_AT_STEPS: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST // _STEP))
"""What a long number leaves of itself if only every hundredth byte is looked at."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST + 1))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING: Final = ord("{")
_CLOSING: Final = ord("}")
_BRACE_OF_BRACKET: Final = ord("{") - ord("[")
"""The bit that makes a brace of a bracket, opening or closing."""


def extremes(values: Sequence[bytes]) -> dict[int, str]:
    """Which values cannot be read, and why."""
    found: dict[int, str] = {}
    for at, value in enumerate(values):
        if len(value) <= _LONGEST:
            continue
        if value.count(b"{") + value.count(b"[") > _DEEPEST and _is_deep(value):
            found[at] = _TOO_DEEP
        elif _DIGITS_AT_STEPS.search(value[::_STEP]) and _LONG_NUMBER.search(_STRINGS.sub(b"", value)):
            found[at] = _TOO_LONG
    return found


def _is_deep(text: bytes) -> bool:
    value = Payloads.of([text])
    braces = value.codes | _BRACE_OF_BRACKET
    at = np.flatnonzero((braces == _OPENING) | (braces == _CLOSING))
    outside = np.searchsorted(np.flatnonzero(value.quotes), at) % 2 == 0
    steps = np.where(braces[at[outside]] == _OPENING, 1, -1)
    return bool(np.cumsum(steps).max(initial=0) > _DEEPEST)
