"""The formats that the settings ask for, of values, keys and headers. Called by `layout`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.s3.formats.avro import AvroFiles
from icestream.connectors.s3.formats.format import Format
from icestream.connectors.s3.formats.gzip import Compression
from icestream.connectors.s3.formats.json_lines import JsonLines
from icestream.connectors.s3.formats.parquet import CODECS, ParquetFiles
from icestream.connectors.s3.formats.raw_bytes import LINE_END, RawBytes
from icestream.converters.registry.avro_connect import AvroOptions

_CLASSES: Final = "io.confluent.connect.s3.format."
_AVRO: Final = f"{_CLASSES}avro.AvroFormat"


def value_format(settings: Mapping[str, Any]) -> Format:
    return _format("format.class", settings["format.class"], settings)


def key_format(settings: Mapping[str, Any]) -> Format | None:
    """None: keys are not stored."""
    if not settings.get("store.kafka.keys", False):
        return None
    return _format("keys.format.class", settings.get("keys.format.class") or _AVRO, settings)


def header_format(settings: Mapping[str, Any]) -> Format | None:
    if not settings.get("store.kafka.headers", False):
        return None
    made = _format("headers.format.class", settings.get("headers.format.class") or _AVRO, settings)
    if isinstance(made, RawBytes):
        key = "headers.format.class"
        raise ConfigError([Problem(key, f"'{key}': headers cannot be written as bare bytes")])
    return made


def _format(key: str, name: str, settings: Mapping[str, Any]) -> Format:
    compression = _compression(settings)
    match name.removeprefix(_CLASSES):
        case "json.JsonFormat":
            decimals = str(settings.get("json.decimal.format") or "BASE64").upper()
            return JsonLines(decimals == "NUMERIC", compression)
        case "bytearray.ByteArrayFormat":
            given = settings.get("format.bytearray.separator")
            ending = settings.get("format.bytearray.extension") or ".bin"
            return RawBytes(LINE_END if given is None else given, ending, compression)
        case "avro.AvroFormat":
            _refuse_gzip(key, compression)
            codec = settings.get("avro.codec") or "null"
            return AvroFiles(codec, _avro_options(settings), settings.get("allow.optional.map.keys", False))
        case "parquet.ParquetFormat":
            _refuse_gzip(key, compression)
            return _parquet(settings)
    raise ConfigError([Problem(key, f"'{key}={name}' is no format that is known here")])


def _parquet(settings: Mapping[str, Any]) -> ParquetFiles:
    codec = settings.get("parquet.codec") or "snappy"
    if codec not in CODECS:
        known = ", ".join(CODECS)
        raise ConfigError([Problem("parquet.codec", f"'parquet.codec={codec}' is none of {known}")])
    return ParquetFiles(codec, _avro_options(settings), settings.get("allow.optional.map.keys", False))


def _avro_options(settings: Mapping[str, Any]) -> AvroOptions:
    return AvroOptions(
        enhanced=settings.get("enhanced.avro.schema.support", True),
        metadata=settings.get("connect.meta.data", True),
    )


def _compression(settings: Mapping[str, Any]) -> Compression | None:
    if (settings.get("s3.compression.type") or "none") == "none":
        return None
    return Compression(settings.get("s3.compression.level", -1))


def _refuse_gzip(key: str, compression: Compression | None) -> None:
    if compression is not None:
        message = f"'s3.compression.type=gzip' goes with JSON and bytes only; choose another '{key}', or none"
        raise ConfigError([Problem("s3.compression.type", message)])
