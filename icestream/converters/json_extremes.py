"""JSON that is valid, and that no reader could take apart: refused before anybody relies on it.

Called by the reader of JSON without schemas for every chunk, so it looks twice only where it must.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.records.payloads import Payloads

_Codes = np.ndarray[tuple[int], np.dtype[np.uint8]]
_Starts = np.ndarray[tuple[int], np.dtype[np.int32]]
_DEEPEST: Final = 910
"""Levels. Jackson takes 1000; so do the decoders, less what is on Python's stack already when they begin."""
_LONGEST: Final = 1000
"""Digits of a number, as in Jackson."""
_TOO_DEEP: Final = f"Document nesting depth ({_DEEPEST + 1}) exceeds the maximum allowed ({_DEEPEST})"
_TOO_LONG: Final = f"Number value length exceeds the maximum allowed ({_LONGEST})"
_SHORT: Final = 2 * _DEEPEST
"""Bytes; whatever is shorter is harmless."""
_LARGE: Final = 2**16
"""More bytes than this hold more brackets than the fast count can count."""
_TOGETHER: Final = 256
"""Values that are looked at together: as many as a processor's cache holds."""
_STEPS: Final = 10
_STEP: Final = _LONGEST // _STEPS
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_LONGEST + 1))
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING: Final = ord("{")
_CLOSING: Final = ord("}")
_BRACE_OF_BRACKET: Final = ord("{") - ord("[")
"""The bit that makes a brace of a bracket, opening or closing."""


def extremes(values: Sequence[bytes], held: pa.BinaryArray) -> dict[int, str]:
    """Which values cannot be read, and why. `held` are the same values, back to back."""
    starts = np.frombuffer(held.buffers()[1], np.int32)[: len(values) + 1]
    codes = np.frombuffer(held.buffers()[2], np.uint8)[: starts[-1]]
    deep = [at for at in _with_many_brackets(codes, starts) if _is_deep(values[at])]
    long = [at for at in _with_many_digits(codes, starts) if _is_long(values[at])]
    return dict.fromkeys(long, _TOO_LONG) | dict.fromkeys(deep, _TOO_DEEP)


def _with_many_brackets(codes: _Codes, starts: _Starts) -> list[int]:
    found = np.flatnonzero(np.diff(starts) > _LARGE).tolist()
    for low in range(0, len(starts) - 1, _TOGETHER):
        some = starts[low : low + _TOGETHER + 1]
        if some[-1] - some[0] <= _SHORT:
            continue
        opening = (codes[some[0] : some[-1]] | _BRACE_OF_BRACKET) == _OPENING
        # An empty value at the end begins where there is nothing.
        begins = np.minimum(some[:-1] - some[0], len(opening) - 1)
        many = np.add.reduceat(opening, begins, dtype=np.uint16) > _DEEPEST
        found += (low + np.flatnonzero(many)).tolist()
    return found


def _is_deep(text: bytes) -> bool:
    value = Payloads.of([text])
    braces = value.codes | _BRACE_OF_BRACKET
    at = np.flatnonzero((braces == _OPENING) | (braces == _CLOSING))
    outside = np.searchsorted(np.flatnonzero(value.quotes), at) % 2 == 0
    steps = np.where(braces[at[outside]] == _OPENING, 1, -1)
    return bool(np.cumsum(steps).max(initial=0) > _DEEPEST)


def _with_many_digits(codes: _Codes, starts: _Starts) -> list[int]:
    """Those with a digit at many steps in a row: a long number has that."""
    steps = codes[::_STEP]
    others = np.flatnonzero((steps < ord("0")) | (steps > ord("9")))
    bounds = np.concatenate([[-1], others, [len(steps)]])
    runs = np.flatnonzero(np.diff(bounds) > _STEPS)
    first = np.searchsorted(starts, (bounds[runs] + 1) * _STEP, side="right") - 1
    last = np.searchsorted(starts, (bounds[runs + 1] - 1) * _STEP, side="right") - 1
    return [
        at for low, high in zip(first.tolist(), last.tolist(), strict=True) for at in range(low, high + 1)
    ]


def _is_long(text: bytes) -> bool:
    return _LONG_NUMBER.search(_STRINGS.sub(b"", text)) is not None
