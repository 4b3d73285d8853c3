"""JSON that is valid, and that no reader could take apart: refused before anybody relies on it. Called by
the reader of JSON without schemas for every value, so it looks twice only where it must."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

_DEEPEST: Final = 200
"""Levels. Jackson takes 1000; whoever walks through a value recurses, and Python's stack ends at 1000."""
_LONGEST: Final = 1000
"""Digits of a number, as in Jackson."""
_STEP: Final = _LONGEST // 2
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TWO_DIGITS: Final = re.compile(rb"[0-9]{2}")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST + 1))
_OPENING: Final = np.frombuffer(b"[{", np.uint8)
_CLOSING: Final = np.frombuffer(b"]}", np.uint8)


def extreme(value: bytes) -> str:
    """Why a value cannot be read; empty if it can."""
    if len(value) <= 2 * _DEEPEST:
        return ""
    if value.count(b"[") + value.count(b"{") > _DEEPEST and _depth(value) > _DEEPEST:
        return f"the value is nested deeper than {_DEEPEST} levels"
    # A number that long has a digit at two steps in a row.
    if len(value) > _LONGEST and _TWO_DIGITS.search(value[::_STEP]) and _has_long_number(value):
        return f"the value has a number of more than {_LONGEST} digits"
    return ""


def _depth(value: bytes) -> int:
    codes = np.frombuffer(_STRINGS.sub(b"", value), np.uint8)
    steps = np.isin(codes, _OPENING).astype(np.int64) - np.isin(codes, _CLOSING)
    return int(np.cumsum(steps).max(initial=0))


def _has_long_number(value: bytes) -> bool:
    return _LONG_NUMBER.search(_STRINGS.sub(b"", value)) is not None
