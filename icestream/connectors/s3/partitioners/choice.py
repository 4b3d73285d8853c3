"""The partitioner that the settings ask for. Called by `layout`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.s3.partitioners.by_field import FieldPartitioner
from icestream.connectors.s3.partitioners.by_time import Extractor, TimeBasedPartitioner
from icestream.connectors.s3.partitioners.joda import JodaPattern
from icestream.connectors.s3.partitioners.partitioner import DefaultPartitioner, Encoded, Partitioner
from icestream.connectors.s3.zones import Zone, zone_setting
from icestream.records.column import Column
from icestream.records.records import Records

_CLASSES: Final = "io.confluent.connect.storage.partitioner."
_EXTRACTORS: Final[Mapping[str, Extractor]] = {
    name: one
    for one in ("Wallclock", "Record", "RecordField")
    for name in (one, f"{_CLASSES}TimeBasedPartitioner${one}TimestampExtractor")
}
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
Affix = Literal["PREFIX", "SUFFIX"]


def partitioner_of(settings: Mapping[str, Any]) -> Partitioner:
    """ConfigError if the settings make none."""
    name = settings.get("partitioner.class") or f"{_CLASSES}DefaultPartitioner"
    delim = settings.get("directory.delim", "/")
    made = _made(name.removeprefix(_CLASSES), settings, delim)
    if made is None:
        raise ConfigError([Problem("partitioner.class", f"'partitioner.class={name}' is not known here")])
    affix = str(settings.get("s3.schema.partition.affix.type") or "NONE").upper()
    return made if affix == "NONE" else WithSchemaName(made, affix == "PREFIX", delim)


def _made(name: str, settings: Mapping[str, Any], delim: str) -> Partitioner | None:
    match name:
        case "DefaultPartitioner":
            return DefaultPartitioner()
        case "FieldPartitioner":
            return _by_field(settings, delim)
        case "TimeBasedPartitioner":
            duration, pattern = settings.get("partition.duration.ms", -1), settings.get("path.format", "")
            return _by_time(settings, duration, pattern.removesuffix(delim) if delim else pattern)
        case "DailyPartitioner":
            return _by_time(settings, _DAY_MS, f"'year'=YYYY{delim}'month'=MM{delim}'day'=dd")
        case "HourlyPartitioner":
            pattern = f"'year'=YYYY{delim}'month'=MM{delim}'day'=dd{delim}'hour'=HH"
            return _by_time(settings, _HOUR_MS, pattern)
    return None


def _by_field(settings: Mapping[str, Any], delim: str) -> FieldPartitioner:
    names = tuple(settings.get("partition.field.name") or ())
    if not names:
        key = "partition.field.name"
        raise ConfigError([Problem(key, f"'{key}' must name the fields of the FieldPartitioner")])
    return FieldPartitioner(names, delim)


def _by_time(settings: Mapping[str, Any], duration_ms: int, pattern: str) -> TimeBasedPartitioner:
    found: list[Problem] = []
    if duration_ms <= 0:
        key = "partition.duration.ms"
        found.append(
            Problem(key, f"'{key}={duration_ms}' must be a time above 0 for a time-based partitioner")
        )
    joda, zone = None, None
    try:
        joda = _pattern(pattern, settings.get("locale") or "")
    except ConfigError as error:
        found += error.problems
    try:
        zone = _zone(settings.get("timezone") or "")
    except ConfigError as error:
        found += error.problems
    given = settings.get("timestamp.extractor") or "Wallclock"
    extractor = _EXTRACTORS.get(given)
    if extractor is None:
        message = f"'timestamp.extractor={given}' is none of Wallclock, Record and RecordField"
        found.append(Problem("timestamp.extractor", message))
    if found or joda is None or zone is None or extractor is None:
        raise ConfigError(found)
    field = settings.get("timestamp.field") or "timestamp"
    return TimeBasedPartitioner(joda, duration_ms, zone, extractor, field)


def _pattern(pattern: str, locale: str) -> JodaPattern:
    if not locale:
        raise ConfigError(
            [Problem("locale", "'locale' must be set for a time-based partitioner, such as en")]
        )
    if not pattern:
        key = "path.format"
        message = f"'{key}' must be set for the TimeBasedPartitioner, such as 'year'=YYYY/'month'=MM"
        raise ConfigError([Problem(key, message)])
    try:
        return JodaPattern.parsed(pattern, locale)
    except ValueError as error:
        raise ConfigError(
            [Problem("path.format", f"'path.format={pattern}' cannot be used: {error}")]
        ) from None


def _zone(name: str) -> Zone:
    if not name:
        message = "'timezone' must be set for a time-based partitioner, such as UTC"
        raise ConfigError([Problem("timezone", message)])
    return zone_setting(name)


@dataclass(frozen=True)
class WithSchemaName:
    """`s3.schema.partition.affix.type`: the name of the value's schema before or after the other folders."""

    partitioner: Partitioner
    is_before: bool
    delim: str

    @property
    def by_time(self) -> bool:
        return self.partitioner.by_time

    def encoded(self, records: Records, partition: int, now_ms: int) -> Encoded:
        found = self.partitioner.encoded(records, partition, now_ms)
        schema = records.value.schema if isinstance(records.value, Column) else None
        name = f"schema_name={'null' if schema is None or schema.name is None else schema.name}"
        paths = [self.delim.join((name, path) if self.is_before else (path, name)) for path in found.paths]
        return Encoded(paths, found.codes, found.times, found.failed)
