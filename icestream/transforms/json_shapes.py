"""What JsonToMapTransform makes of JSON objects: a schema by the kinds of their values, and the values in it.

The kind of a value is a short code, so that alike objects are found by comparing strings: i, l and n for
integers of 32 bits, of 64 and larger, d double, b boolean, s string, m object, `[` and a code array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    decimal,
    map_of,
)
from icestream.transforms.failures import GroupFailed
from icestream.transforms.jackson import encodable, text

MAP_OF_TEXTS: Final = map_of(STRING, STRING, optional=True)
_LARGEST: Final = 10**76
_DEEPEST: Final = 100
_NULL, _OBJECT, _ARRAY = "null", "o", "["
_SCHEMAS: Final[Mapping[str, ConnectSchema]] = {
    "i": ConnectSchema(Kind.INT32, optional=True),
    "l": ConnectSchema(Kind.INT64, optional=True),
    "n": decimal(0, optional=True),
    "d": ConnectSchema(Kind.FLOAT64, optional=True),
    "b": ConnectSchema(Kind.BOOLEAN, optional=True),
    "s": OPTIONAL_STRING,
    "m": MAP_OF_TEXTS,
    _OBJECT: map_of(OPTIONAL_STRING, OPTIONAL_STRING, optional=True),
}
"""`o` is an object within an array."""
_NODES: Final[Mapping[type, str]] = {
    str: "s",
    bool: "b",
    float: "d",
    type(None): _NULL,
    dict: _OBJECT,
    list: _ARRAY,
}


def code(value: Any) -> str | None:
    """The kind of a value; None if its field is left out: nulls, and what is empty."""
    node = _node(value)
    if node == _ARRAY:
        return _array_code(value)
    if node == _OBJECT:
        return "m" if value else None
    return None if node == _NULL else node


def _node(value: Any) -> str:
    if type(value) is int:
        return "i" if -(2**31) <= value < 2**31 else "l" if -(2**63) <= value < 2**63 else "n"
    return _NODES[type(value)]


def _array_code(values: list[Any]) -> str | None:
    if not values:
        return None
    nodes = set(map(_node, values))
    if len(nodes) > 1 or _NULL in nodes:
        return "[s"
    if _ARRAY not in nodes:
        return _ARRAY + nodes.pop()
    inner = set(map(_array_code, values))
    if len(inner) > 1:
        return "[[s"
    only = inner.pop()
    return None if only is None else _ARRAY + only


@functools.cache
def schema(code: str) -> ConnectSchema:
    return array(schema(code[1:]), optional=True) if code.startswith(_ARRAY) else _SCHEMAS[code]


def fitted(value: Any, code: str) -> Any:
    """A value as a column of its kind takes it. Raises GroupFailed."""
    if code.startswith(_ARRAY):
        if code.count(_ARRAY) > _DEEPEST:
            raise GroupFailed(f"Arrays are nested in more than {_DEEPEST} levels")
        return [fitted(item, code[1:]) for item in value]
    return _FITTED[code](value) if code in _FITTED else value


def texts(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """An object as a map of texts."""
    return [(encodable(name), text(item)) for name, item in value.items()]


def _decimal(value: int) -> Decimal:
    if not -_LARGEST < value < _LARGEST:
        raise GroupFailed("A number has more than 76 digits, which is the most that a decimal can have")
    return Decimal(value)


_FITTED: Final[Mapping[str, Callable[[Any], Any]]] = {"s": text, "m": texts, _OBJECT: texts, "n": _decimal}
