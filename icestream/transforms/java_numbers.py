"""Numbers as Java narrows, parses and prints them, on columns. Used by `java_casts`."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.rows import Indexes

_INTEGERS: Final = np.zeros(256, np.bool_)
_INTEGERS[list(b"0123456789-")] = True
_REALS: Final = np.zeros(256, np.bool_)
_REALS[list(b"0123456789-+.eE")] = True
_LONG: Final = re.compile(r"([-+]?)0*(?!0\d)(\d+)")
_MOST_DIGITS: Final = 19
_LAST_OF_ONE_CHAR: Final = "\uffff"
"""Digits beyond it are two of Java's chars, and none of them is a digit."""
_DECIMAL: Final = re.compile(
    r"([-+]?)(NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([fFdD]?)"
)
_HEXADECIMAL: Final = re.compile(
    r"([-+]?)(0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][-+]?[0-9]+)[fFdD]?"
)
_TRIMMED: Final = "".join(map(chr, range(33)))
"""What Java's String.trim takes off."""
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
"""Between them, Java prints without an exponent."""


class Unparsable(ValueError):
    """A text that Java's parse method refuses."""


def saturated(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Floating point numbers as integers: cut off, at the ends of the range if beyond, NaN is 0; then bytes
    and shorts keep the low bits of an int, as Java's narrowing does."""
    wide: pa.DataType = pa.int64() if target == pa.int64() else pa.int32()
    info = np.iinfo(wide.to_pandas_dtype())
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    low, high = float(info.min), float(info.max)  # 2^63-1 is 2^63 here, which is too much
    inside = (numbers > low) & (numbers < high)
    whole = np.where(inside, numbers, 0.0).astype(info.dtype)
    whole[numbers <= low] = info.min
    whole[numbers >= high] = info.max
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(whole, wide, mask=mask).cast(target, safe=False)


def over_distinct(
    values: pa.Array, change: Callable[[Any], Any], target: pa.DataType
) -> tuple[pa.Array, dict[int, Any]]:
    """Each distinct value changed by a function of Python's own values, and what is to be told of those that
    are `Unparsable`: the value, by position."""
    encoded = values.dictionary_encode()
    changed, bad = [], {}
    for code, value in enumerate(encoded.dictionary.to_pylist()):
        try:
            changed.append(change(value))
        except Unparsable:
            changed.append(None)
            bad[code] = value
    result = pa.array(changed, target).take(encoded.indices)
    if not bad:
        return result, {}
    codes: Indexes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(codes, list(bad)))
    return result, {row: bad[int(codes[row])] for row in rows.tolist()}


def parsed_integers(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """As `Long.parseLong` and its like do it."""
    if _only(values, _INTEGERS):
        try:
            return values.cast(target), {}
        except pa.ArrowInvalid:
            pass
    info = np.iinfo(target.to_pandas_dtype())

    def parse(text: str) -> int:
        match = _LONG.fullmatch(text)
        if not match or len(match[2]) > _MOST_DIGITS or max(text) > _LAST_OF_ONE_CHAR:
            raise Unparsable(text)
        number = int(match[1] + match[2])
        if not info.min <= number <= info.max:
            raise Unparsable(text)
        return number

    return over_distinct(values, parse, target)


def parsed_reals(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """As `Double.parseDouble` and `Float.parseFloat` do it."""
    if _only(values, _REALS):
        try:
            return values.cast(target), {}
        except pa.ArrowInvalid:
            pass
    texts, failed = over_distinct(values, _plain_real, pa.string())
    return texts.cast(target), failed


def _plain_real(text: str) -> str:
    """A number that Java reads, as Arrow reads it."""
    text = text.strip(_TRIMMED)
    if match := _DECIMAL.fullmatch(text):
        sign, digits, suffix = match.groups()
        if not suffix or digits[0] not in "NI":
            return f"{sign}{digits.lower()}"
    if match := _HEXADECIMAL.fullmatch(text):
        return repr(float.fromhex(match[1] + match[2]))
    raise Unparsable(text)


def _only(values: pa.Array, allowed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    """Whether the texts are made of these ASCII characters."""
    _, offsets, text = values.buffers()
    if text is None:
        return True
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    codes = np.frombuffer(text, np.uint8)[bounds[0] : bounds[-1]]
    return bool(allowed[codes].all())


def printed_reals(values: pa.Array) -> pa.Array:
    """As `Double.toString` and `Float.toString` do it: the shortest digits that mean the number, at least one
    of them after the point."""
    texts = values.cast(pa.string())
    numbers = np.abs(values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    plain = (numbers >= _PLAIN_FROM) & (numbers < _PLAIN_BELOW)
    pointed = pc.if_else(pc.match_substring(texts, "."), texts, pc.binary_join_element_wise(texts, ".0", ""))
    if plain.all():
        return pointed
    odd = values.filter(pa.array(~plain))
    printed, _ = over_distinct(
        odd, functools.partial(_java_real, single=odd.type == pa.float32()), pa.string()
    )
    return pc.replace_with_mask(pointed, pa.array(~plain), printed)


def _java_real(number: float, single: bool) -> str:
    """A number that is very small, large, zero or none."""
    if not math.isfinite(number):
        return str(number).replace("nan", "NaN").replace("inf", "Infinity")
    if not number:
        return str(number)
    exact = np.float32 if single else np.float64
    text = np.format_float_scientific(exact(number), unique=True, trim="0")
    two_digits = f"{number:.1e}"  # where one would do, Java takes the two that are nearest
    if len(text) <= len(two_digits) and exact(two_digits) == exact(number):
        text = two_digits
    digits, _, exponent = text.partition("e")
    return f"{digits}E{int(exponent)}"
