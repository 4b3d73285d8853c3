"""Bytes of records to the text of their values, by the value converter. For the job of FileStreamSink."""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import orjson

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.records.java_text import (
    Verbatim,
    hash_order,
    java_date,
    java_double,
    java_float,
    java_long,
    java_text,
)


@dataclass(frozen=True)
class Texts:
    """One text for each record that could be converted; what could not, by index, with the reason."""

    texts: Sequence[bytes]
    bad: Mapping[int, str] = field(default_factory=dict)


Decoder = Callable[[Sequence[bytes | None]], Texts]

_NULL: Final = b"null"
_NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
_MILLISECONDS_A_DAY: Final = 86_400_000
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_DATE: Final = "org.apache.kafka.connect.data.Date"
_TIMES: Final = ("org.apache.kafka.connect.data.Time", "org.apache.kafka.connect.data.Timestamp")
_WHOLE: Final = ("int8", "int16", "int32", "int64")


def text_decoder(config: Config) -> Decoder:
    named = config.get("value.converter", "").strip().rpartition(".")[2]
    settings = subset(config, "value.converter.")
    if named == "StringConverter":
        return _strings(settings.get("converter.encoding", "UTF-8").strip())
    if named == "ByteArrayConverter":
        # Java prints where the array lies in memory; nobody can want that twice.
        return lambda values: Texts([_NULL if value is None else b"[B@%x" % len(value) for value in values])
    if settings.get("schemas.enable", "true").strip().lower() == "false":
        return lambda values: _each(values, lambda document: java_text(document))
    return lambda values: _each(values, _enveloped)


def _strings(encoding: str) -> Decoder:
    try:
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
    except LookupError:
        key = "value.converter.converter.encoding"
        raise ConfigError([Problem(key, f"'{encoding}' is no encoding; use UTF-8")]) from None

    def decode(values: Sequence[bytes | None]) -> Texts:
        if is_utf8:
            return Texts([_NULL if value is None else _valid(value) for value in values])
        return Texts(
            [_NULL if value is None else value.decode(encoding, "replace").encode() for value in values]
        )

    return decode


def _valid(value: bytes) -> bytes:
    if value.isascii():
        return value
    return value.decode(errors="replace").encode()


def _each(values: Sequence[bytes | None], shown: Callable[[Any], str]) -> Texts:
    texts: list[bytes] = []
    bad: dict[int, str] = {}
    for at, value in enumerate(values):
        try:
            text = _NULL if value is None else shown(_document(value)).encode(errors="replace")
        except _Unfit as reason:
            bad[at] = str(reason)
            continue
        texts.append(text)
    return Texts(texts, bad)


class _Unfit(Exception):
    """Why a record cannot be converted."""


def _document(value: bytes) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise _Unfit(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
        ) from None


def _enveloped(document: Any) -> str:
    if document is None:
        return "null"
    if not isinstance(document, dict) or set(document) != {"schema", "payload"}:
        raise _Unfit(_NO_ENVELOPE)
    schema, payload = document["schema"], document["payload"]
    if schema is None:
        return java_text(payload)
    return java_text(_with_schema(schema, payload))


def _with_schema(schema: Any, payload: Any) -> Any:
    if not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
        raise _Unfit("Schema must contain 'type' field")
    if payload is None:
        if "default" in schema and schema["default"] is not None:
            return _with_schema(schema, schema["default"])
        if schema.get("optional"):
            return None
        raise _Unfit(f"Invalid null value for required {schema['type'].upper()} field")
    convert = _KINDS.get(schema["type"])
    if convert is None:
        raise _Unfit(f"Unknown schema type: {schema['type']}")
    try:
        return convert(schema, payload)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise _Unfit(f"'{json.dumps(payload)[:100]}' does not fit its schema type {schema['type']}") from None


def _whole(schema: Mapping[str, Any], payload: Any) -> Any:
    number = java_long(int(payload))
    if schema.get("name") == _DATE:
        return Verbatim(java_date(number * _MILLISECONDS_A_DAY))
    return Verbatim(java_date(number)) if schema.get("name") in _TIMES else number


def _bytes(schema: Mapping[str, Any], payload: Any) -> Any:
    if schema.get("name") == _DECIMAL:
        if isinstance(payload, int | float):
            return Verbatim(str(Decimal(str(payload))))
        unscaled = int.from_bytes(base64.b64decode(payload, validate=True), "big", signed=True)
        return Verbatim(f"{Decimal(unscaled).scaleb(-int(schema['parameters']['scale'])):f}")
    return Verbatim(f"[B@{len(base64.b64decode(payload, validate=True)):x}")


def _string(schema: Mapping[str, Any], payload: Any) -> str:
    # Jackson reads numbers and booleans as text where text is wanted.
    return payload if isinstance(payload, str) else json.dumps(payload)


def _boolean(schema: Mapping[str, Any], payload: Any) -> bool:
    return payload is True


def _array(schema: Mapping[str, Any], payload: Any) -> list[Any]:
    if not isinstance(payload, list):
        raise TypeError
    return [_with_schema(schema["items"], item) for item in payload]


def _map(schema: Mapping[str, Any], payload: Any) -> Any:
    keys, values = schema["keys"], schema["values"]
    if isinstance(payload, dict):
        shown = {key: java_text(_with_schema(values, item)) for key, item in payload.items()}
    else:
        shown = {
            java_text(_with_schema(keys, key)): java_text(_with_schema(values, item)) for key, item in payload
        }
    return Verbatim("{" + ", ".join(f"{key}={shown[key]}" for key in hash_order(shown)) + "}")


def _struct(schema: Mapping[str, Any], payload: Any) -> Verbatim:
    if not isinstance(payload, dict):
        raise TypeError
    fields = []
    for part in schema["fields"]:
        value = _with_schema(part, payload.get(part["field"]))
        if value is not None:
            fields.append(f"{part['field']}={java_text(value)}")
    return Verbatim("Struct{" + ",".join(fields) + "}")


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any], Any], Any]]] = {
    **dict.fromkeys(_WHOLE, _whole),
    "float": lambda schema, payload: Verbatim(java_float(float(payload))),
    "double": lambda schema, payload: Verbatim(java_double(float(payload))),
    "boolean": _boolean,
    "string": _string,
    "bytes": _bytes,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
