"""Where records go and what their objects look like, made from the settings; the writer opens `objects` by
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.s3.formats.format import Format
from icestream.connectors.s3.formats.gzip import Compression
from icestream.connectors.s3.formats.json_lines import JsonLines
from icestream.connectors.s3.names import ObjectNames
from icestream.connectors.s3.partitioners.partitioner import DefaultPartitioner, Partitioner
from icestream.connectors.s3.rotation import RotationRules

OnNull = Literal["fail", "ignore", "write"]


@dataclass(frozen=True)
class Layout:
    """Plain data: it crosses process boundaries."""

    names: ObjectNames
    partitioner: Partitioner
    rules: RotationRules
    values: Format
    keys: Format | None = None
    """`store.kafka.keys`."""
    headers: Format | None = None
    """`store.kafka.headers`."""
    on_null: OnNull = "fail"
    reports_nulls: bool = True
    """Whether a record without a value that is ignored becomes a dead letter."""
    tombstone_folder: str = "tombstone"


_FORMATS: Final = "io.confluent.connect.s3.format."
JSON_FORMAT: Final = f"{_FORMATS}json.JsonFormat"
_PARTITIONERS: Final = "io.confluent.connect.storage.partitioner."
DEFAULT_PARTITIONER: Final = f"{_PARTITIONERS}DefaultPartitioner"


def layout_of(settings: Mapping[str, Any], *, longest_step: int | None = None) -> Layout:
    """From parsed settings. ConfigError if they make no layout."""
    get = settings.get
    return Layout(
        names=ObjectNames(
            get("topics.dir", "topics"),
            get("directory.delim", "/"),
            get("file.delim", "+"),
            get("filename.offset.zero.pad.width", 10),
            longest_step,
        ),
        partitioner=_partitioner(settings),
        rules=RotationRules(
            settings["flush.size"],
            get("rotate.interval.ms", -1),
            get("rotate.file.on.partition.change", True),
        ),
        values=_format("format.class", settings),
        on_null=get("behavior.on.null.values", "fail"),
        reports_nulls=get("report.null.values.to.dlq", True),
        tombstone_folder=get("tombstone.encoded.partition", "tombstone"),
    )


def _format(key: str, settings: Mapping[str, Any]) -> Format:
    name = settings[key]
    if name == JSON_FORMAT:
        return JsonLines(settings.get("json.decimal.format") == "NUMERIC", _compression(settings))
    raise ConfigError([Problem(key, f"'{key}={name}' is no format that is known here")])


def _compression(settings: Mapping[str, Any]) -> Compression | None:
    if settings.get("s3.compression.type", "none") == "none":
        return None
    return Compression(settings.get("s3.compression.level", -1))


def _partitioner(settings: Mapping[str, Any]) -> Partitioner:
    name = settings.get("partitioner.class", DEFAULT_PARTITIONER)
    if name == DEFAULT_PARTITIONER:
        return DefaultPartitioner()
    raise ConfigError([Problem("partitioner.class", f"'partitioner.class={name}' is not known here")])
