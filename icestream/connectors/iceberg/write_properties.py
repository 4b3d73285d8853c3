"""The table properties that decide how files are written: which are taken, and which values they may have.

A connector sets them as `iceberg.tables.write-props.*`, a table among its properties. Used by `settings.py`
to judge a config, by `table.py` to judge a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from icestream.api.config import Config, subset
from icestream.api.errors import Problem

_CODEC: Final = "write.parquet.compression-codec"
_LEVEL: Final = "write.parquet.compression-level"
_LEVELS: Final[Mapping[str, range]] = {"zstd": range(1, 23), "gzip": range(1, 10), "brotli": range(12)}
_CODECS: Final = ("zstd", "gzip", "snappy", "brotli", "lz4", "uncompressed", "none")
_MANIFEST_CODEC: Final = "write.avro.compression-codec"
_MANIFEST_CODECS: Final = ("gzip", "zstd", "deflate", "zstandard", "bzip2", "null")
"""Of manifests, as PyIceberg knows them, to the letter; for snappy a library is missing."""
_METRICS: Final = re.compile(r"none|counts|full|truncate\((?!0+\))[0-9]{1,9}\)", re.IGNORECASE)
_NAMES_A_CLASS: Final = ("write.py-location-provider.impl", "write.location-provider.impl")


def _size(value: str) -> str | None:
    is_one = re.fullmatch(r"[0-9]{1,18}", value.strip()) is not None and int(value) > 0
    return None if is_one else "a whole number above 0"


def _distinct(value: str) -> str | None:
    is_one = re.fullmatch(r"[0-9]{1,9}", value.strip()) is not None and int(value) > 0
    return None if is_one else "a whole number from 1 to 999999999"


def _switch(value: str) -> str | None:
    return None if value.strip().lower() in ("true", "false") else "true or false"


def _metrics(value: str) -> str | None:
    return None if _METRICS.fullmatch(value.strip()) else "none, counts, full or truncate(LENGTH)"


def _codec(value: str) -> str | None:
    return None if value.strip().lower() in _CODECS else f"one of {', '.join(_CODECS)}"


def _format(value: str) -> str | None:
    return None if value.strip().lower() == "parquet" else "parquet, which is what this version writes"


def _level(value: str) -> str | None:
    return None if re.fullmatch(r"[0-9]{1,3}", value.strip()) else "a whole number"


def _page_version(value: str) -> str | None:
    return None if value.strip().lower() in ("v1", "v2") else "v1 or v2"


def _chance(value: str) -> str | None:
    is_one = re.fullmatch(r"0?\.[0-9]{1,9}", value.strip()) is not None and float(value) > 0
    return None if is_one else "a number between 0 and 1, such as 0.01"


def _path(value: str) -> str | None:
    return None if value.strip() else "the address of a folder"


_CHECKS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "write.target-file-size-bytes": _size,
    "write.parquet.row-group-size-bytes": _size,
    "write.parquet.page-version": _page_version,
    "write.parquet.page-size-bytes": _size,
    "write.parquet.page-row-limit": _size,
    "write.parquet.dict-size-bytes": _size,
    _CODEC: _codec,
    _LEVEL: _level,
    "write.format.default": _format,
    "write.metadata.metrics.default": _metrics,
    "write.object-storage.enabled": _switch,
    "write.object-storage.partitioned-paths": _switch,
    "write.data.path": _path,
}
_CHECKS_OF_COLUMNS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "write.metadata.metrics.column.": _metrics,
    "write.parquet.bloom-filter-enabled.column.": _switch,
    "write.parquet.bloom-filter-fpp.column.": _chance,
    "write.parquet.bloom-filter-ndv.column.": _distinct,
}


def taken_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """What the writers of files get to see of a table's properties."""
    return {key: value for key, value in properties.items() if _check(key) is not None}


def property_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The properties that no file could be written with, and why."""
    for key, value in properties.items():
        check = _check(key)
        if key == _NAMES_A_CLASS[0]:
            yield key, f"'{value}' is a Python class, which no connector or table may bring here; remove it"
        elif check is not None and (wanted := check(value)):
            yield key, f"'{value}' is not {wanted}; correct it"
    codec = properties.get(_CODEC, "zstd").strip().lower()
    level = properties.get(_LEVEL, "").strip()
    if codec in _LEVELS and _level(level) is None and int(level) not in _LEVELS[codec]:
        yield _LEVEL, f"'{level}' is not from {min(_LEVELS[codec])} to {max(_LEVELS[codec])}; correct it"


def manifest_problems(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The properties of a table, not of a connector, that no manifest could be written with, and why."""
    codec = properties.get(_MANIFEST_CODEC, "gzip")
    if codec not in _MANIFEST_CODECS:
        wanted = f"one of {', '.join(_MANIFEST_CODECS)}"
        yield _MANIFEST_CODEC, f"'{codec}' is not {wanted}, with which manifests are written here; correct it"


def write_problems(config: Config, prefixes: Sequence[str]) -> list[Problem]:
    found: list[Problem] = []
    for prefix in prefixes:
        own = subset(config, prefix)
        found += [Problem(f"{prefix}{key}", f"'{prefix}{key}': {why}") for key, why in property_problems(own)]
        found += [
            Problem(f"{prefix}{key}", f"'{prefix}{key}={own[key]}' is a Java class; remove it")
            for key in _NAMES_A_CLASS[1:]
            if own.get(key)
        ]
    return found


def write_warnings(config: Config, prefixes: Sequence[str]) -> list[str]:
    return [
        f"'{prefix}{key}' has no effect: it is not among the write properties that are taken here"
        for prefix in prefixes
        for key in subset(config, prefix)
        if _check(key) is None and key not in _NAMES_A_CLASS
    ]


def _check(key: str) -> Callable[[str], str | None] | None:
    of_column = (check for prefix, check in _CHECKS_OF_COLUMNS.items() if key.startswith(prefix))
    return next(of_column, None) or _CHECKS.get(key)
