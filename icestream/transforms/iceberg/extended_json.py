"""MongoDB's Extended JSON, in the strict form that Debezium writes, as BSON's types.

BSON's string, double, boolean, int32, binary, null, document and array are Python's own; the rest are here.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.transforms.failures import GroupFailed
from icestream.transforms.iceberg.jackson import encodable

INVALID_OPERATION: Final = "org.bson.BsonInvalidOperationException"
_PARSE_EXCEPTION: Final = "org.bson.json.JsonParseException"
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OBJECT_ID: Final = re.compile("[0-9a-fA-F]{24}")
_MOST_DIGITS: Final = 34
_DEEPEST: Final = 100
Document = dict[str, Any]


class Int64(int):
    pass


class DateTime(int):
    """Milliseconds since 1970."""


class Timestamp(int):
    """Seconds since 1970."""


class ObjectId(str):
    pass


class Decimal128(str):
    pass


class JavaScript(str):
    pass


@dataclass(frozen=True)
class ScopedJavaScript:
    code: str
    scope: Document


@dataclass(frozen=True)
class RegularExpression:
    pattern: str
    options: str


@dataclass(frozen=True)
class Other:
    """A value of a type that has no place in records."""

    kind: str


_KINDS: Final[Mapping[type, str]] = {
    type(None): "NULL",
    str: "STRING",
    float: "DOUBLE",
    bool: "BOOLEAN",
    int: "INT32",
    bytes: "BINARY",
    dict: "DOCUMENT",
    list: "ARRAY",
    Int64: "INT64",
    DateTime: "DATE_TIME",
    Timestamp: "TIMESTAMP",
    ObjectId: "OBJECT_ID",
    Decimal128: "DECIMAL128",
    JavaScript: "JAVASCRIPT",
    ScopedJavaScript: "JAVASCRIPT_WITH_SCOPE",
    RegularExpression: "REGULAR_EXPRESSION",
}


def kind(value: Any) -> str:
    """BSON's name of the type."""
    return value.kind if isinstance(value, Other) else _KINDS[type(value)]


def parse(text: str) -> Document:
    """The document at the start of a text. Raises GroupFailed."""
    text = text.lstrip()
    try:
        value = _DECODER.raw_decode(text)[0] if text else Other("END_OF_DOCUMENT")
    except (ValueError, KeyError, TypeError, RecursionError, decimal.InvalidOperation) as error:
        raise GroupFailed(f"The value is no Extended JSON: {error}", _PARSE_EXCEPTION) from None
    if type(value) is dict:
        _check_depth(value)
        return value
    raise GroupFailed(
        "readStartDocument can only be called when CurrentBSONType is DOCUMENT, "
        f"not when CurrentBSONType is {kind(value)}.",
        INVALID_OPERATION,
    )


def _check_depth(document: Document) -> None:
    """MongoDB takes no deeper documents either."""
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        inner = [item for one in level for item in (one.values() if type(one) is dict else one)]
        level = [item for item in inner if type(item) in (dict, list)]
        if not level:
            return
    raise GroupFailed(f"The document is nested in more than {_DEEPEST} levels")


def _integer(text: str) -> int:
    value = int(text) if len(text) < 100 else 2**63
    if not -(2**63) <= value < 2**63:
        raise GroupFailed(f'For input string: "{text}"', "java.lang.NumberFormatException")
    return value if -(2**31) <= value < 2**31 else Int64(value)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = {encodable(name): _clean(value) for name, value in pairs}
    first = pairs[0][0] if pairs else ""
    if first in _LONE:
        if len(found) > 1:
            raise ValueError(f"{first} is not alone")
        return _LONE[first](found[first])
    return _PAIRED[first](found) if first in _PAIRED else found


def _clean(value: Any) -> Any:
    if type(value) is list:
        return [_clean(item) for item in value]
    return encodable(value) if type(value) is str else value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"a string was expected, but there is {value!r}")
    return value


def _object_id(value: Any) -> ObjectId:
    if not _OBJECT_ID.fullmatch(_text(value)):
        raise GroupFailed(
            "state should be: hexString has 24 characters", "java.lang.IllegalArgumentException"
        )
    return ObjectId(value.lower())


def _date(value: Any) -> DateTime:
    if type(value) in (int, Int64):
        return DateTime(value)
    moment = datetime.datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return DateTime((moment - _EPOCH) // datetime.timedelta(milliseconds=1))


def _bounded(bits: int, value: Any) -> int:
    number = int(_text(value))
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{value} has more than {bits} bits")
    return number


def _decimal(value: Any) -> Decimal128:
    number = decimal.Decimal(_text(value))
    if len(number.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError(f"{value} has more than {_MOST_DIGITS} digits")
    return Decimal128(number)


def _timestamp(value: Mapping[str, Any]) -> Timestamp:
    """Its seconds are 32 bits, which Java reads with a sign."""
    seconds = (int(value["t"]) + 2**31) % 2**32 - 2**31
    int(value["i"])
    return Timestamp(seconds)


def _binary(found: Document) -> Any:
    value = found.get("$binary")
    if isinstance(value, dict) and len(found) == 1:
        return _bytes(value["base64"])
    return _bytes(value) if {"$binary", "$type"} == found.keys() else found


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(_text(text), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _old_regular_expression(found: Document) -> Any:
    pattern, options = found.get("$regex"), found.get("$options", "")
    if type(pattern) is not str or type(options) is not str or found.keys() - {"$regex", "$options"}:
        return found
    return RegularExpression(pattern, "".join(sorted(options)))


def _regular_expression(value: Mapping[str, Any]) -> RegularExpression:
    return RegularExpression(_text(value["pattern"]), "".join(sorted(_text(value["options"]))))


def _java_script(found: Document) -> Any:
    code = _text(found["$code"])
    if "$scope" not in found:
        return JavaScript(code)
    scope = found["$scope"]
    if type(scope) is not dict:
        raise ValueError("$scope is no document")
    return ScopedJavaScript(code, scope)


def _constant(name: str, expected: Any) -> Callable[[Any], Other]:
    def read(value: Any) -> Other:
        if value != expected:
            raise ValueError(f"{expected} was expected, but there is {value!r}")
        return Other(name)

    return read


def _symbol(value: Any) -> Other:
    _text(value)
    return Other("SYMBOL")


_LONE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "$oid": _object_id,
    "$date": _date,
    "$numberInt": lambda value: _bounded(32, value),
    "$numberLong": lambda value: Int64(_bounded(64, value)),
    "$numberDouble": lambda value: float(_text(value)),
    "$numberDecimal": _decimal,
    "$timestamp": _timestamp,
    "$uuid": lambda value: uuid.UUID(_text(value)).bytes,
    "$regularExpression": _regular_expression,
    "$symbol": _symbol,
    "$minKey": _constant("MIN_KEY", 1),
    "$maxKey": _constant("MAX_KEY", 1),
    "$undefined": _constant("UNDEFINED", True),
    "$dbPointer": lambda value: Other("DB_POINTER"),
}
"""Objects that have just this key are a value of another type."""
_PAIRED: Final[Mapping[str, Callable[[Document], Any]]] = {
    "$binary": _binary,
    "$type": _binary,
    "$regex": _old_regular_expression,
    "$options": _old_regular_expression,
    "$code": _java_script,
}
"""Those that may have a second one."""
_DECODER: Final = json.JSONDecoder(parse_int=_integer, object_pairs_hook=_object, strict=False)
