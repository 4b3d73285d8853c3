"""One decoded JSON value to a value of a schema, by the rules of Java's JsonConverter.

For the values that the bulk reader refuses, and for the defaults of schemas. Numbers are ints and Decimals.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import numpy as np

from icestream.jsontext.one_value import NotConvertible
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Kind

_WIDE: Final = Context(prec=76, traps=[Inexact, InvalidOperation])
_MILLISECONDS_A_DAY: Final = 86_400_000
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LATEST: Final = 253_402_300_799_999
_EARLIEST: Final = -62_135_596_800_000
_WHITE: Final = re.compile(r"[\x00-\x20]+")
TIME_RANGE: Final = "Time values must use number of milliseconds greater than 0 and less than 86400000"


def connect_value(schema: ConnectSchema, node: Any, fills: bool) -> Any:
    """The value; nulls become the schema's default if `fills`. Raises NotConvertible with Java's words."""
    if node is None:
        if schema.default is not None and fills:
            return schema.default
        if schema.optional:
            return None
        raise NotConvertible(f"Invalid null value for required {schema.kind} field")
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return logical(schema, node)
    return _KINDS[schema.kind](schema, node, fills)


def node_type(node: Any) -> str:
    """What Jackson calls it."""
    for kind, name in _NODES:
        if isinstance(node, kind):
            return name
    return "NULL" if node is None else "MISSING"


_NODES: Final = (
    (bool, "BOOLEAN"),
    (int | Decimal, "NUMBER"),
    (str, "STRING"),
    (list, "ARRAY"),
    (dict, "OBJECT"),
)


def _is_number(node: Any) -> bool:
    return isinstance(node, int | Decimal) and not isinstance(node, bool)


def _wrapped(node: Any, bits: int) -> int:
    """The lowest bits, as Java casts; what is no number is 0."""
    if not _is_number(node):
        return 0
    if isinstance(node, Decimal):
        node = int(node) if node.adjusted() < _MOST_DIGITS else 0
    return int((node + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))


_MOST_DIGITS: Final = 10_000
"""Of a whole number; whatever is longer has 64 zeros at its end, unless somebody has written all digits."""


def _whole(bits: int) -> Callable[[ConnectSchema, Any, bool], int]:
    # Java takes 32 bits first, and of them the lowest.
    return lambda schema, node, fills: _wrapped(_wrapped(node, 64), bits)


def _float(schema: ConnectSchema, node: Any, fills: bool) -> float:
    if not _is_number(node):
        return 0.0
    with np.errstate(over="ignore"):
        return float(np.float32(str(node))) + 0.0


def _double(schema: ConnectSchema, node: Any, fills: bool) -> float:
    if not _is_number(node):
        return 0.0
    try:
        return float(node) + 0.0
    except OverflowError:
        return float("inf") if node > 0 else float("-inf")


def _boolean(schema: ConnectSchema, node: Any, fills: bool) -> bool:
    return node is True


def _string(schema: ConnectSchema, node: Any, fills: bool) -> str | None:
    return node if isinstance(node, str) else None


def _bytes(schema: ConnectSchema, node: Any, fills: bool) -> bytes | None:
    if not isinstance(node, str):
        return None
    try:
        return _unbase64(node)
    except ValueError:
        raise NotConvertible("Invalid bytes field") from None


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(_WHITE.sub("", text), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _array(schema: ConnectSchema, node: Any, fills: bool) -> list[Any]:
    assert schema.value is not None
    of = schema.value
    # Java walks over whatever there is: the values of an object, nothing in a scalar.
    items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [connect_value(of, item, fills) for item in items]


def _map(schema: ConnectSchema, node: Any, fills: bool) -> list[tuple[Any, Any]]:
    assert schema.key is not None and schema.value is not None
    of_key, of_value = schema.key, schema.value
    if of_key.kind is Kind.STRING:
        if not isinstance(node, dict):
            raise NotConvertible(
                f"Maps with string fields should be encoded as JSON objects, but found {node_type(node)}"
            )
        return [(key, connect_value(of_value, item, fills)) for key, item in node.items()]
    if not isinstance(node, list):
        raise NotConvertible(
            "Maps with non-string fields should be encoded as JSON array of tuples, but found "
            f"{node_type(node)}"
        )
    pairs = [_pair(of_key, of_value, entry, fills) for entry in node]
    try:
        return list(dict(pairs).items())
    except TypeError:  # keys that are lists or structs
        return pairs


def _pair(of_key: ConnectSchema, of_value: ConnectSchema, entry: Any, fills: bool) -> tuple[Any, Any]:
    if not isinstance(entry, list):
        raise NotConvertible(f"Found invalid map entry instead of array tuple: {node_type(entry)}")
    if len(entry) != 2:
        raise NotConvertible(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
    return connect_value(of_key, entry[0], fills), connect_value(of_value, entry[1], fills)


def _struct(schema: ConnectSchema, node: Any, fills: bool) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise NotConvertible(f"Structs should be encoded as JSON objects, but found {node_type(node)}")
    found = {}
    for field in schema.fields:
        value = connect_value(field.schema, node.get(field.name), fills)
        check_nulls(field.schema, value, f'field: "{field.name}"')
        found[field.name] = value
    return found


def check_nulls(schema: ConnectSchema, value: Any, place: str) -> None:
    """As a Java struct checks what it is given: a node of another type may have become null."""
    if value is None:
        if not schema.optional:
            raise NotConvertible(f"Invalid value: null used for required {place}, schema type: {schema.kind}")
    elif schema.kind is Kind.ARRAY and schema.value is not None:
        for item in value:
            check_nulls(schema.value, item, f"element of array {place}")
    elif schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        for key, item in value:
            check_nulls(schema.key, key, f"key of map {place}")
            check_nulls(schema.value, item, f"value of map {place}")


def _decimal(schema: ConnectSchema, node: Any) -> Decimal:
    if _is_number(node):
        return _scaled(schema, Decimal(node))
    if not isinstance(node, str):
        raise NotConvertible(
            "Invalid type for Decimal, underlying representation should be numeric or bytes but was "
            f"{node_type(node)}"
        )
    try:
        data = _unbase64(node)
        scale = int(schema.parameter(SCALE) or "")
    except ValueError:
        raise NotConvertible("Invalid bytes for Decimal field") from None
    if not data:
        raise NotConvertible("Invalid bytes for Decimal field")
    return _scaled(schema, Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _HUGE))


_HUGE: Final = Context(prec=10_000)


def _scaled(schema: ConnectSchema, number: Decimal) -> Decimal:
    scale = int(schema.parameter(SCALE) or 0)
    try:
        return number.quantize(Decimal(1).scaleb(-scale), ROUND_DOWN, _WIDE)
    except (InvalidOperation, Inexact):
        raise NotConvertible(
            f"The decimal {number} has more digits than 76 with {scale} of them after the point"
        ) from None


def _day(schema: ConnectSchema, node: Any) -> Any:
    days = _int_node(node, "Date")
    try:
        return _EPOCH.date() + dt.timedelta(days=days)
    except OverflowError:
        return days


def _time(schema: ConnectSchema, node: Any) -> dt.time:
    milliseconds = _int_node(node, "Time")
    # Java lets one millisecond too many pass, which no time of day is.
    if not 0 <= milliseconds < _MILLISECONDS_A_DAY:
        raise NotConvertible(TIME_RANGE)
    return (_EPOCH + dt.timedelta(milliseconds=milliseconds)).time()


def _int_node(node: Any, logical: str) -> int:
    if isinstance(node, bool) or not isinstance(node, int) or not -(2**31) <= node < 2**31:
        raise NotConvertible(
            f"Invalid type for {logical}, underlying representation should be integer but was "
            f"{node_type(node)}"
        )
    return node


def _moment(schema: ConnectSchema, node: Any) -> Any:
    if isinstance(node, bool) or not isinstance(node, int):
        raise NotConvertible(
            "Invalid type for Timestamp, underlying representation should be integral but was "
            f"{node_type(node)}"
        )
    milliseconds = _wrapped(node, 64)
    if not _EARLIEST <= milliseconds <= _LATEST:
        return milliseconds
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)


_LOGICAL: Final[Mapping[str, Callable[[ConnectSchema, Any], Any]]] = {
    DECIMAL: _decimal,
    DATE: _day,
    TIME: _time,
    TIMESTAMP: _moment,
}
_KINDS: Final[Mapping[Kind, Callable[[ConnectSchema, Any, bool], Any]]] = {
    Kind.INT8: _whole(8),
    Kind.INT16: _whole(16),
    Kind.INT32: _whole(32),
    Kind.INT64: _whole(64),
    Kind.FLOAT32: _float,
    Kind.FLOAT64: _double,
    Kind.BOOLEAN: _boolean,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.STRUCT: _struct,
}
