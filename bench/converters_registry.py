"""The API-log record as producers with a Schema Registry write it; for `bench.records`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.encoded import Encoded
from icestream.converters.registry.avro import AvroFormat
from icestream.converters.registry.client import RegisteredSchema
from icestream.converters.registry.converter import Format, RegistryConverter
from icestream.converters.registry.json_schema import JsonSchemaFormat
from icestream.converters.registry.protobuf import ProtobufFormat
from icestream.converters.registry.protobuf_compile import compiled
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import head

_ID: Final = 1
_TEXTS: Final = ("version", "time", "node", "origin", "type", "name", "bucket", "object", "versionId")
_NUMBERS: Final = ("rx", "tx", "txHeaders")
_CALL_TEXTS: Final = (
    *("timeToFirstByte", "requestReadTime", "responseWriteTime", "requestTime", "timeToResponse"),
    *("readBlocked", "writeBlocked", "sourceHost", "requestID", "userAgent", "requestPath", "requestHost"),
    *("accessKey", "parentUser"),
)
_MAPS: Final = ("requestHeader", "responseHeader", "requestQuery", "requestClaims")


class _OneSchema:
    """A registry that has one schema; what is measured is not the network."""

    def __init__(self, kind: str, text: str) -> None:
        self._schema = RegisteredSchema(_ID, kind, text)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        return self._schema

    def latest(self, subject: str) -> RegisteredSchema:
        return self._schema

    def register(self, subject: str, kind: str, text: str) -> int:
        return _ID

    def look_up(self, subject: str, kind: str, text: str) -> int:
        return _ID


def avro(logs: Sequence[bytes]) -> Encoded:
    import fastavro

    text = json.dumps(_avro_schema())
    schema = fastavro.parse_schema(json.loads(text))

    def encode(record: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, record)
        return out.getvalue()

    return _encoded(AvroFormat.configured, "AVRO", text, encode, logs)


def protobuf(logs: Sequence[bytes]) -> Encoded:
    from google.protobuf.json_format import ParseDict
    from google.protobuf.message_factory import GetMessageClass

    text = _proto()
    message = GetMessageClass(compiled(text, ()).message((0,)))

    def encode(record: Any) -> bytes:
        return b"\0" + ParseDict(record, message()).SerializeToString()

    return _encoded(ProtobufFormat.configured, "PROTOBUF", text, encode, logs)


def json_schema(logs: Sequence[bytes]) -> Encoded:
    text = json.dumps(_json_schema())
    return _encoded(
        JsonSchemaFormat.configured, "JSON", text, lambda record: json.dumps(record).encode(), logs
    )


def _encoded(
    configured: Callable[..., Format],
    kind: str,
    text: str,
    encode: Callable[[Any], bytes],
    logs: Sequence[bytes],
) -> Encoded:
    registry = _OneSchema(kind, text)
    converter = RegistryConverter(configured({}, Subjects.configured({}, registry, False)), registry, False)
    return Encoded(converter, [head(_ID) + encode(json.loads(record)) for record in logs])


def _avro_schema() -> dict[str, Any]:
    def fields(names: Sequence[str], kind: Any) -> list[dict[str, Any]]:
        return [{"name": name, "type": ["null", kind], "default": None} for name in names]

    strings = {"type": "map", "values": "string"}
    call = {
        "type": "record",
        "name": "CallInfo",
        "fields": [
            *fields(["httpStatusCode"], "int"),
            *fields(_NUMBERS, "long"),
            *fields(_CALL_TEXTS, "string"),
            *fields(_MAPS, strings),
        ],
    }
    every = [*fields(_TEXTS, "string"), *fields(["tags"], strings), *fields(["callInfo"], call)]
    return {"type": "record", "name": "Api", "namespace": "minio", "fields": every}


def _proto() -> str:
    def fields(kind: str, names: Sequence[str], first: int) -> str:
        return "\n".join(f"  {kind} {name} = {first + number};" for number, name in enumerate(names))

    return f"""syntax = "proto3";
package minio;
message Api {{
{fields("optional string", _TEXTS, 1)}
  map<string, string> tags = 20;
  CallInfo callInfo = 21;
}}
message CallInfo {{
  optional int32 httpStatusCode = 1;
{fields("optional int64", _NUMBERS, 2)}
{fields("optional string", _CALL_TEXTS, 10)}
{fields("map<string, string>", _MAPS, 30)}
}}
"""


def _json_schema() -> dict[str, Any]:
    def fields(names: Sequence[str], kind: dict[str, Any]) -> dict[str, Any]:
        return {name: {"oneOf": [{"type": "null"}, kind]} for name in names}

    strings = {"type": "object", "connect.type": "map", "additionalProperties": {"type": "string"}}
    call = {
        **fields(["httpStatusCode"], {"type": "integer", "connect.type": "int32"}),
        **fields(_NUMBERS, {"type": "integer"}),
        **fields(_CALL_TEXTS, {"type": "string"}),
        **fields(_MAPS, strings),
    }
    every = {
        **fields(_TEXTS, {"type": "string"}),
        **fields(["tags"], strings),
        **fields(["callInfo"], {"type": "object", "properties": call}),
    }
    return {"type": "object", "title": "Api", "properties": every}
