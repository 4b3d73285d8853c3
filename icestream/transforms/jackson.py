"""JSON as Jackson reads it from strings and writes it again, for JsonToMapTransform."""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec

from icestream.records.java_text import java_double

_BLANKS: Final = " \t\n\r"
_CONTROLS: Final = {chr(code): f"\\u{code:04X}" for code in range(32)}
_ESCAPES: Final = str.maketrans(
    {
        **_CONTROLS,
        "\b": "\\b",
        "\t": "\\t",
        "\n": "\\n",
        "\f": "\\f",
        "\r": "\\r",
        '"': '\\"',
        "\\": "\\\\",
    }
)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class NoJson(ValueError):
    """Nothing that Jackson reads."""


def read(text: str) -> Any:
    """The first value in the text; None, too, if there is none. Raises NoJson."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):  # other values, text behind them, huge numbers, half surrogates
        return _read_leniently(text.lstrip(_BLANKS))


def _read_leniently(text: str) -> Any:
    if not text:
        return None
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise NoJson from None
    if end < len(text) and _goes_on(value, text[end]):
        raise NoJson
    return value


def _goes_on(value: Any, after: str) -> bool:
    """Whether the sign after a value at the top would be part of it."""
    if isinstance(value, bool) or value is None:
        return after.isalnum() or after in "_$"
    return isinstance(value, int | float) and after not in _BLANKS


def _refuse(name: str) -> None:
    raise NoJson


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def text(value: Any) -> str:
    """A string as it is, any other value as JSON."""
    return encodable(value) if isinstance(value, str) else _written(value)


def encodable(value: str) -> str:
    """Half a surrogate pair is what Java writes for it in UTF-8: a question mark."""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _written(value: Any) -> str:
    match value:
        case str():
            return f'"{encodable(value.translate(_ESCAPES))}"'
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
        case dict():
            return "{" + ",".join(f"{_written(name)}:{_written(item)}" for name, item in value.items()) + "}"
    return "[" + ",".join(map(_written, value)) + "]"
