"""The API-log record as each converter's producers would write it, for `bench.records`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from bench import converters_registry
from bench.encoded import Encoded
from icestream.connectors.iceberg.schemas import arrow_schema
from icestream.converters.json_converter import JsonConverter
from icestream.embedded.minio_tables import LOG_TABLES


@dataclass(frozen=True)
class RecordKind:
    name: str
    bar: float
    """Records a second that one core has to take."""
    encode: Callable[[Sequence[bytes]], Encoded]


def _plain(logs: Sequence[bytes]) -> Encoded:
    return Encoded(JsonConverter.configured({"schemas.enable": "false"}, False), logs)


def _envelope(logs: Sequence[bytes]) -> Encoded:
    schema = json.dumps({"type": "struct", "fields": _fields(arrow_schema(LOG_TABLES[0].schema))}).encode()
    records = [b'{"schema":%s,"payload":%s}' % (schema, log) for log in logs]
    return Encoded(JsonConverter.configured({}, False), records)


def _fields(fields: Any) -> list[dict[str, Any]]:
    return [{"field": one.name, "optional": True, **_connect_type(one.type)} for one in fields]


def _connect_type(kind: pa.DataType) -> dict[str, Any]:
    if pt.is_struct(kind):
        return {"type": "struct", "fields": _fields(kind)}
    if pt.is_map(kind):
        text = {"type": "string", "optional": True}
        return {"type": "map", "keys": {"type": "string"}, "values": text}
    return {"type": str(kind) if pt.is_integer(kind) else "string"}


KINDS: Final = (
    RecordKind("JSON", 120_000, _plain),
    RecordKind("JSON with schemas", 100_000, _envelope),
    RecordKind("Avro", 100_000, converters_registry.avro),
    RecordKind("Protobuf", 100_000, converters_registry.protobuf),
    RecordKind("JSON Schema", 100_000, converters_registry.json_schema),
)
