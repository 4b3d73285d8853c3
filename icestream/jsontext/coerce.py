"""One JSON payload to one row, with Kafka Connect's coercions; for the few that do not decode natively.

The rules are those of Java's table sinks for schemaless records: numbers and booleans become text in a string
column, objects and lists become JSON text there, text becomes a number in a number column, a bare number in a
timestamp column is milliseconds since 1970.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import re
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import is_uuid
from icestream.records.java_text import java_double
from icestream.records.json_source import parsed

_NUMBER = int | float | decimal.Decimal
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# What Java's parse methods take; Python's own would take underscores, too.
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+")
_REAL_TEXT = re.compile(
    r"\s*([+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?\s*"
)
_UUID_BYTES = 16
_INT_BITS = {pa.int32(): 32, pa.int64(): 64}


def row_from(payload: bytes, schema: pa.Schema) -> dict[str, Any]:
    """The row of a payload that is a JSON object; raises ValueError with a reason that names the field."""
    value = parsed(payload, _number)
    return {field.name: coerced(value.get(field.name), field.type, field.name) for field in schema}


def _number(text: str) -> decimal.Decimal | float:
    number = float(text)
    return number if math.isinf(number) else decimal.Decimal(text)


def coerced(value: Any, kind: pa.DataType, path: str) -> Any:
    """One value as a column of this type holds it; raises CastError with a reason that names the field."""
    if value is None:
        return None
    for applies, convert in _CONVERSIONS:
        if applies(kind):
            try:
                return convert(value, kind, path)
            except CastError:
                raise
            except (ValueError, TypeError, OverflowError, decimal.InvalidOperation):
                break
    raise CastError(f"field '{path}' is {_shown(value)}, which does not fit {_kind_name(kind)}")


class CastError(ValueError):
    """A value that its column cannot hold; the reason names the field."""


class _NotOfThisKind(ValueError):
    pass


def _string(value: Any, kind: pa.DataType, path: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return java_double(float(value))
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


def _whole(value: Any, kind: pa.DataType, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _NotOfThisKind
    if isinstance(value, str) and not _WHOLE_TEXT.fullmatch(value):
        raise _NotOfThisKind
    number = int(value)
    bits = _INT_BITS[kind]
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise _NotOfThisKind
    return number


def _floating(value: Any, kind: pa.DataType, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _NotOfThisKind
    if isinstance(value, str):
        found = _REAL_TEXT.fullmatch(value)
        if found is None:
            raise _NotOfThisKind
        value = found[1]
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all doubles
        return math.inf if value > 0 else -math.inf


def _decimal(value: Any, kind: pa.Decimal128Type, path: str) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _NotOfThisKind
    # Wide enough for any value that could fit; the context's default of 28 digits is not.
    context = decimal.Context(prec=76)
    exact = decimal.Decimal(str(value)).quantize(
        decimal.Decimal(1).scaleb(-kind.scale), decimal.ROUND_HALF_UP, context
    )
    if not exact.is_finite() or len(exact.as_tuple().digits) > kind.precision:
        raise _NotOfThisKind
    return exact


def _boolean(value: Any, kind: pa.DataType, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _NotOfThisKind


def _timestamp(value: Any, kind: pa.TimestampType, path: str) -> dt.datetime:
    if isinstance(value, bool):
        raise _NotOfThisKind
    if isinstance(value, _NUMBER):
        moment = _EPOCH + dt.timedelta(milliseconds=int(value))
    elif isinstance(value, dt.datetime):
        moment = value
    elif isinstance(value, dt.date):
        moment = dt.datetime.combine(value, dt.time(), dt.UTC)
    else:
        moment = _parsed_moment(value)
    if kind.tz is None:
        return moment.replace(tzinfo=None)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _parsed_moment(text: Any) -> dt.datetime:
    if not isinstance(text, str):
        raise _NotOfThisKind
    # Python reads six digits of a second at most.
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"
    return dt.datetime.fromisoformat(text)


def _date(value: Any, kind: pa.DataType, path: str) -> dt.date:
    if isinstance(value, int) and not isinstance(value, bool):
        return _EPOCH.date() + dt.timedelta(days=value)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).date()
    return value if isinstance(value, dt.date) else dt.date.fromisoformat(value)


def _time(value: Any, kind: pa.DataType, path: str) -> dt.time:
    if isinstance(value, int) and not isinstance(value, bool):
        return (_EPOCH + dt.timedelta(milliseconds=value)).time()
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).time()
    return value if isinstance(value, dt.time) else dt.time.fromisoformat(value)


def _uuid(value: Any, kind: pa.DataType, path: str) -> bytes:
    if isinstance(value, bytes) and len(value) == _UUID_BYTES:
        return value
    if not isinstance(value, str | uuid.UUID):
        raise _NotOfThisKind
    return uuid.UUID(str(value)).bytes


def _bytes(value: Any, kind: pa.DataType, path: str) -> bytes:
    if not isinstance(value, str | bytes):
        raise _NotOfThisKind
    data = base64.b64decode(value, validate=True) if isinstance(value, str) else value
    if pt.is_fixed_size_binary(kind) and len(data) != kind.byte_width:
        raise _NotOfThisKind
    return data


def _struct(value: Any, kind: pa.StructType, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _NotOfThisKind
    fields = (kind.field(i) for i in range(kind.num_fields))
    return {
        field.name: coerced(value.get(field.name), field.type, f"{path}.{field.name}") for field in fields
    }


def _list(value: Any, kind: pa.ListType, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _NotOfThisKind
    return [coerced(item, kind.value_type, f"{path}[{position}]") for position, item in enumerate(value)]


def _map(value: Any, kind: pa.MapType, path: str) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict):
        raise _NotOfThisKind
    return [
        (coerced(key, kind.key_type, path), coerced(item, kind.item_type, f"{path}.{key}"))
        for key, item in value.items()
    ]


_CONVERSIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any, str], Any]]] = [
    (pt.is_string, _string),
    (pt.is_struct, _struct),
    (pt.is_map, _map),
    (pt.is_list, _list),
    (pt.is_boolean, _boolean),
    (pt.is_integer, _whole),
    (pt.is_floating, _floating),
    (pt.is_decimal, _decimal),
    (pt.is_timestamp, _timestamp),
    (pt.is_date, _date),
    (pt.is_time, _time),
    (is_uuid, _uuid),
    (pt.is_fixed_size_binary, _bytes),
    (pt.is_binary, _bytes),
]


def _kind_name(kind: pa.DataType) -> str:
    if pt.is_struct(kind):
        return "a struct"
    return f"a column of type {kind}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _plain(value: Any) -> float | str:
    return float(value) if isinstance(value, decimal.Decimal) else str(value)
