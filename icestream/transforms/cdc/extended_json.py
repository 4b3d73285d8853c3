"""MongoDB's Extended JSON, in the strict form that Debezium writes, as BSON's types. For
MongoDebeziumTransform.

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
from typing import Any, Final

from icestream.api.nesting import has_more_levels, is_too_deep
from icestream.jsontext.one_value import encodable
from icestream.transforms.failures import GroupFailed

_PARSE_EXCEPTION: Final = "org.bson.json.JsonParseException"
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OBJECT_ID: Final = re.compile("[0-9a-fA-F]{24}")
_MOST_DIGITS: Final = 34
_DEEPEST: Final = 100
"""MongoDB takes no deeper documents either."""
_LEVELS_OF_A_VALUE: Final = 3
"""At most, as `{"$dbPointer": {"$id": {"$oid": …}}}` has."""
_TOO_DEEP: Final = f"The document is nested in more than {_DEEPEST} levels"
Document = dict[str, Any]


class Int64(int):
    pass


class DateTime(int):
    """Milliseconds since 1970."""


class Other:
    """A value of a type that has no place in records: its field is left out."""


def parse(text: str) -> Document:
    """The document at the start of a text. Raises GroupFailed."""
    encoded = text.encode(errors="surrogatepass")
    if is_too_deep(encoded):
        raise GroupFailed("The value is no Extended JSON: it is nested too deeply", _PARSE_EXCEPTION)
    if is_too_deep(encoded, _DEEPEST + _LEVELS_OF_A_VALUE):
        raise GroupFailed(_TOO_DEEP)
    try:
        value = _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, KeyError, TypeError, decimal.InvalidOperation) as error:
        raise GroupFailed(f"The value is no Extended JSON: {error}", _PARSE_EXCEPTION) from None
    if type(value) is not dict:
        raise GroupFailed("The value is no document of Extended JSON", _PARSE_EXCEPTION)
    if has_more_levels(value, _DEEPEST, _inside):
        raise GroupFailed(_TOO_DEEP)
    return value


def _inside(value: Any) -> list[Any]:
    items = value.values() if type(value) is dict else value
    return [item for item in items if type(item) in (dict, list)]


def _integer(text: str) -> int:
    value = int(text) if len(text) < 100 else 2**63
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{text[:100]} has more than 64 bits")
    return value if -(2**31) <= value < 2**31 else Int64(value)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = {encodable(name): _clean(value) for name, value in pairs}
    first = pairs[0][0] if pairs else ""
    if first in _UNSUPPORTED:
        raise ValueError(f"{first} is not supported")
    if first in ("$binary", "$type"):
        return _binary(found)
    if first not in _TYPES:
        return found
    if len(found) > 1:
        raise ValueError(f"{first} is not alone")
    return _TYPES[first](found[first])


def _clean(value: Any) -> Any:
    if type(value) is list:
        return [_clean(item) for item in value]
    return encodable(value) if type(value) is str else value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"a string was expected, but there is {value!r}")
    return value


def _object_id(value: Any) -> str:
    if not _OBJECT_ID.fullmatch(_text(value)):
        raise ValueError(f"{value} does not have 24 hexadecimal digits")
    return str(value).lower()


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


def _decimal(value: Any) -> str:
    number = decimal.Decimal(_text(value))
    if len(number.as_tuple().digits) > _MOST_DIGITS:
        raise ValueError(f"{value} has more than {_MOST_DIGITS} digits")
    return str(number)


def _timestamp(value: Mapping[str, Any]) -> DateTime:
    """Its seconds are 32 bits, which Java reads with a sign."""
    return DateTime(((int(value["t"]) + 2**31) % 2**32 - 2**31) * 1000)


def _binary(found: Document) -> Any:
    """`{"$binary": …, "$type": …}` in either order, or the newer form with both in one object."""
    value = found.get("$binary")
    if isinstance(value, dict) and len(found) == 1:
        value = value["base64"]
    elif {"$binary", "$type"} != found.keys():
        return found
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


_TYPES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "$oid": _object_id,
    "$date": _date,
    "$numberInt": lambda value: _bounded(32, value),
    "$numberLong": lambda value: Int64(_bounded(64, value)),
    "$numberDouble": lambda value: float(_text(value)),
    "$numberDecimal": _decimal,
    "$timestamp": _timestamp,
    "$uuid": lambda value: uuid.UUID(_text(value)).bytes,
    "$code": _text,
    **dict.fromkeys(("$symbol", "$minKey", "$maxKey", "$undefined", "$dbPointer"), lambda value: Other()),
}
"""Objects that have just this key are a value of another type."""
_UNSUPPORTED: Final = ("$regex", "$options", "$regularExpression", "$scope")
_DECODER: Final = json.JSONDecoder(parse_int=_integer, object_pairs_hook=_object, strict=False)
