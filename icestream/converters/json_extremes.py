"""JSON that is valid, and that no reader could take apart: refused before anybody relies on it.

Called by the reader of JSON without schemas for every chunk, so it looks twice only where it must.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from icestream.records.payloads import Payloads

_DEEPEST: Final = 200
"""Levels. Jackson takes 1000; whoever walks through a value recurses, and Python's stack ends at 1000."""
_LONGEST: Final = 1000
"""Digits of a number, as in Jackson."""
_TOO_DEEP: Final = f"the value is nested deeper than {_DEEPEST} levels"
_TOO_LONG: Final = f"the value has a number of more than {_LONGEST} digits"
_SHORT: Final = 2 * _DEEPEST
"""Bytes; whatever is shorter is harmless."""
_LARGE: Final = 2**16
"""More bytes than this hold more brackets than the fast count can count."""
_STEPS: Final = 10
_STEP: Final = _LONGEST // _STEPS
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST + 1))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING: Final = ord("{")
_CLOSING: Final = ord("}")
_BRACE_OF_BRACKET: Final = ord("{") - ord("[")
"""The bit that makes a brace of a bracket, opening or closing."""


def extremes(values: Sequence[bytes]) -> dict[int, str]:
    """Which values cannot be read, and why."""
    long = [at for at, value in enumerate(values) if len(value) > _SHORT]
    if not long:
        return {}
    payloads = Payloads.of([values[at] for at in long])
    deep = {long[place]: _TOO_DEEP for place in _with_many_brackets(payloads) if _is_deep(payloads, place)}
    return deep | {
        long[place]: _TOO_LONG for place in _with_many_digits(payloads) if _is_long(payloads, place)
    }


def _with_many_brackets(payloads: Payloads) -> list[int]:
    opening = (payloads.codes | _BRACE_OF_BRACKET) == _OPENING
    many = np.add.reduceat(opening, payloads.offsets[:-1], dtype=np.uint16) > _DEEPEST
    many |= np.diff(payloads.offsets) > _LARGE
    found: list[int] = np.flatnonzero(many).tolist()
    return found


def _is_deep(payloads: Payloads, place: int) -> bool:
    value = payloads[place : place + 1]
    braces = value.codes | _BRACE_OF_BRACKET
    at = np.flatnonzero((braces == _OPENING) | (braces == _CLOSING))
    outside = np.searchsorted(np.flatnonzero(value.quotes), at) % 2 == 0
    steps = np.where(braces[at[outside]] == _OPENING, 1, -1)
    return bool(np.cumsum(steps).max(initial=0) > _DEEPEST)


def _with_many_digits(payloads: Payloads) -> list[int]:
    """Those with a digit at many steps in a row: a long number has that."""
    steps = payloads.codes[::_STEP]
    others = np.flatnonzero((steps < ord("0")) | (steps > ord("9")))
    bounds = np.concatenate([[-1], others, [len(steps)]])
    runs = np.flatnonzero(np.diff(bounds) > _STEPS)
    first = np.searchsorted(payloads.offsets, (bounds[runs] + 1) * _STEP, side="right") - 1
    last = np.searchsorted(payloads.offsets, (bounds[runs + 1] - 1) * _STEP, side="right") - 1
    return [
        place
        for low, high in zip(first.tolist(), last.tolist(), strict=True)
        for place in range(low, high + 1)
    ]


def _is_long(payloads: Payloads, place: int) -> bool:
    (value,) = payloads[place : place + 1]
    return _LONG_NUMBER.search(_STRINGS.sub(b"", value)) is not None
