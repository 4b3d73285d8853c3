"""Where records go and what their objects look like, made from the settings; the writer opens `objects` by
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.s3.compatibility import Compatibility
from icestream.connectors.s3.formats.choice import header_format, key_format, value_format
from icestream.connectors.s3.formats.format import Format
from icestream.connectors.s3.names import ObjectNames
from icestream.connectors.s3.partitioners.choice import partitioner_of
from icestream.connectors.s3.partitioners.partitioner import Partitioner
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
    compatibility: Compatibility = Compatibility.NONE
    on_null: OnNull = "fail"
    reports_nulls: bool = True
    """Whether a record without a value that is ignored becomes a dead letter."""
    tombstone_folder: str = "tombstone"


def layout_of(settings: Mapping[str, Any], *, longest_step: int | None = None) -> Layout:
    """From parsed settings. ConfigError if they make no layout."""
    get = settings.get
    made = Layout(
        names=ObjectNames(
            get("topics.dir", "topics"),
            get("directory.delim", "/"),
            get("file.delim", "+"),
            get("filename.offset.zero.pad.width", 10),
            longest_step,
        ),
        partitioner=partitioner_of(settings),
        rules=RotationRules(
            settings["flush.size"],
            get("rotate.interval.ms", -1),
            get("rotate.file.on.partition.change", True),
        ),
        values=value_format(settings),
        keys=key_format(settings),
        headers=header_format(settings),
        compatibility=Compatibility.named(get("schema.compatibility") or "NONE"),
        on_null=_on_null(settings),
        reports_nulls=get("report.null.values.to.dlq", True),
        tombstone_folder=get("tombstone.encoded.partition", "tombstone"),
    )
    _refuse_strange_names(made)
    return made


def _refuse_strange_names(layout: Layout) -> None:
    """What the settings make of every name, before values of records come in."""
    names = layout.names
    for key, folder in (("topics.dir", "x"), ("tombstone.encoded.partition", layout.tombstone_folder)):
        why = names.refusal(names.folder("x", folder), "x", layout.values.extension)
        if why is not None:
            keys = "topics.dir, directory.delim, file.delim, format.bytearray.extension"
            raise ConfigError([Problem(key, f"{why}; look at {keys} and tombstone.encoded.partition")])


def _on_null(settings: Mapping[str, Any]) -> OnNull:
    given = str(settings.get("behavior.on.null.values") or "fail").lower()
    if given == "write":
        if not settings.get("store.kafka.keys", False):
            message = "'behavior.on.null.values=write' writes keys, so it needs 'store.kafka.keys=true'"
            raise ConfigError([Problem("behavior.on.null.values", message)])
        return "write"
    return "ignore" if given == "ignore" else "fail"
