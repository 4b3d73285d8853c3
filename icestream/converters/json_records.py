"""One JSON payload to one row, with Kafka Connect's coercions; for the few that do not decode natively.

The rules are those of the Iceberg sink for schemaless records: numbers and booleans become text in a string
column, objects and lists become JSON text there, text becomes a number in a number column, a bare number in a
timestamp column is milliseconds since 1970.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.types as pt

from icestream.api.records import is_uuid

_NUMBER = int | decimal.Decimal
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INT_BITS = {pa.int32(): 32, pa.int64(): 64}


def row_from(payload: bytes, schema: pa.Schema) -> dict[str, Any]:
    """The row of a payload; raises ValueError with a reason that names the field."""
    if not payload.strip():
        raise ValueError("the value is empty, not a JSON object")
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the value is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"the value is {_shown(value)}, not a JSON object")
    # Once more, now that it is known to be valid: orjson makes floats of numbers that a decimal would keep.
    value = json.loads(payload, parse_float=decimal.Decimal)
    return {field.name: _coerce(value.get(field.name), field.type, field.name) for field in schema}


def _coerce(value: Any, kind: pa.DataType, path: str) -> Any:
    if value is None:
        return None
    for applies, convert in _CONVERSIONS:
        if applies(kind):
            try:
                return convert(value, kind, path)
            except _Misfit:
                break
            except (ValueError, TypeError, OverflowError, decimal.InvalidOperation) as error:
                if isinstance(error, _Named):
                    raise
                break
    raise _Named(f"field '{path}' is {_shown(value)}, which does not fit {_kind_name(kind)}")


class _Named(ValueError):
    """A reason that already names its field."""


class _Misfit(ValueError):
    pass


def _string(value: Any, kind: pa.DataType, path: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return str(float(value))
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


def _whole(value: Any, kind: pa.DataType, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _Misfit
    number = int(value)
    bits = _INT_BITS[kind]
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise _Misfit
    return number


def _floating(value: Any, kind: pa.DataType, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _Misfit
    return float(value)


def _decimal(value: Any, kind: pa.Decimal128Type, path: str) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, _NUMBER | str):
        raise _Misfit
    # Wide enough for any value that could fit; the context's default of 28 digits is not.
    context = decimal.Context(prec=76)
    exact = decimal.Decimal(str(value)).quantize(
        decimal.Decimal(1).scaleb(-kind.scale), decimal.ROUND_DOWN, context
    )
    if len(exact.as_tuple().digits) > kind.precision:
        raise _Misfit
    return exact


def _boolean(value: Any, kind: pa.DataType, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _Misfit


def _timestamp(value: Any, kind: pa.TimestampType, path: str) -> dt.datetime:
    if isinstance(value, bool):
        raise _Misfit
    if isinstance(value, _NUMBER):
        moment = _EPOCH + dt.timedelta(milliseconds=int(value))
    else:
        moment = _parsed_moment(value)
    if kind.tz is None:
        return moment.replace(tzinfo=None)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _parsed_moment(text: str) -> dt.datetime:
    # Python reads six digits of a second at most.
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"
    return dt.datetime.fromisoformat(text)


def _date(value: Any, kind: pa.DataType, path: str) -> dt.date:
    if isinstance(value, int) and not isinstance(value, bool):
        return _EPOCH.date() + dt.timedelta(days=value)
    return dt.date.fromisoformat(value)


def _time(value: Any, kind: pa.DataType, path: str) -> dt.time:
    if isinstance(value, int) and not isinstance(value, bool):
        return (_EPOCH + dt.timedelta(milliseconds=value)).time()
    return dt.time.fromisoformat(value)


def _uuid(value: Any, kind: pa.DataType, path: str) -> uuid.UUID:
    if not isinstance(value, str):
        raise _Misfit
    return uuid.UUID(value)


def _bytes(value: Any, kind: pa.DataType, path: str) -> bytes:
    if not isinstance(value, str):
        raise _Misfit
    data = base64.b64decode(value, validate=True)
    if pt.is_fixed_size_binary(kind) and len(data) != kind.byte_width:
        raise _Misfit
    return data


def _struct(value: Any, kind: pa.StructType, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Misfit
    fields = (kind.field(i) for i in range(kind.num_fields))
    return {
        field.name: _coerce(value.get(field.name), field.type, f"{path}.{field.name}") for field in fields
    }


def _list(value: Any, kind: pa.ListType, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Misfit
    return [_coerce(item, kind.value_type, f"{path}[{position}]") for position, item in enumerate(value)]


def _map(value: Any, kind: pa.MapType, path: str) -> list[tuple[Any, Any]]:
    if not isinstance(value, dict):
        raise _Misfit
    return [
        (_coerce(key, kind.key_type, path), _coerce(item, kind.item_type, f"{path}.{key}"))
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
    text = json.dumps(value, ensure_ascii=False, default=float)
    return text if len(text) <= 80 else f"{text[:77]}..."
