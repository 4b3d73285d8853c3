"""Values as Java prints them, for text sinks, converters and transforms. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Verbatim:
    """A value whose text is known already."""

    text: str


def java_text(value: Any) -> str:
    """`String.valueOf(value)` of a value that JSON without a schema yields."""
    if isinstance(value, Mapping | list):
        return _nested_text(value)
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(java_long(value))
    if isinstance(value, float):
        return java_double(value)
    text: str = value.text
    return text


def _nested_text(value: Any) -> str:
    """Without recursion: what is left to write is on a stack."""
    parts: list[str] = []
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            pairs = [part for key, item in one.items() for part in (Verbatim(f", {key}="), item)]
            pairs[:1] = [Verbatim(first.text[2:]) for first in pairs[:1]]
            left += reversed([Verbatim("{"), *pairs, Verbatim("}")])
        elif isinstance(one, list):
            items = [part for item in one for part in (Verbatim(", "), item)]
            left += reversed([Verbatim("["), *items[1:], Verbatim("]")])
        else:
            parts.append(java_text(one))
    return "".join(parts)


def java_long(value: int) -> int:
    """Java keeps the lowest 64 bits of what is too large."""
    return (value + 2**63) % 2**64 - 2**63


def java_double(value: float) -> str:
    """The shortest digits that mean the number; of one digit Java makes the two that are nearest to it."""
    shortest = repr(value)
    if value and shortest.lstrip("-")[1:2] == "e":
        nearest = f"{value:.1e}"
        shortest = nearest if float(nearest) == value else shortest
    return _decimal(shortest)


def java_float(value: float) -> str:
    return _decimal(str(np.float32(value)))


def java_date(epoch_ms: int) -> str:
    """`java.util.Date.toString()`, in the zone of this machine."""
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(epoch_ms // 1000))


def _decimal(shortest: str) -> str:
    """The shortest digits in Java's form: plain from 0.001 to 10 million, else with an exponent."""
    special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
    if shortest in special:
        return special[shortest]
    sign, text = ("-", shortest[1:]) if shortest.startswith("-") else ("", shortest)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if -3 < point <= 7:
        padded = digits.ljust(point, "0")
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
