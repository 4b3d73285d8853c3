"""Which Delta tables this version writes to. Asked before anything is staged: delta-rs checks neither
constraints nor generated columns, and tells of other features only when a commit is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deltalake import DeltaTable

from icestream.connectors.delta.files.partitions import can_partition
from icestream.connectors.delta.schemas import UnfitType, arrow_schema

_FEATURES: Final = frozenset(
    {
        *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
        *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    }
)
"""With which an append needs nothing that is not checked below."""
_COLUMN_RULES: Final[Mapping[str, str]] = {
    "delta.generationExpression": "is generated",
    "delta.invariants": "has an invariant",
    "delta.identity.start": "is an identity column",
    "delta.identity.step": "is an identity column",
}


def unfit(table: DeltaTable) -> str | None:
    """Why nothing can be written to a table; None if it can."""
    return next(_reasons(table), None)


def _reasons(table: DeltaTable) -> Iterator[str]:
    protocol, metadata = table.protocol(), table.metadata()
    for feature in sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())} - _FEATURES):
        yield f"it has the feature {feature}, with which this version does not write"
    if (mode := metadata.configuration.get("delta.columnMapping.mode", "none")) != "none":
        yield f"its columns are mapped by {mode} (delta.columnMapping.mode)"
    for key in sorted(metadata.configuration):
        if key.startswith("delta.constraints."):
            yield f"it has the constraint {key.removeprefix('delta.constraints.')}, which nobody would check"
    schema_json = table.schema().to_json()
    for name, rule in _rules(json.loads(schema_json)):
        yield f"column '{name}' {rule}, which nobody would check"
    try:
        schema = arrow_schema(schema_json)
    except UnfitType as error:
        yield f"{error}, which this version does not write"
        return
    for name in metadata.partition_columns:
        if not can_partition(schema.field(name).type):
            yield f"it is partitioned by '{name}' of type {schema.field(name).type}, which cannot be written"


def _rules(struct: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in struct["fields"]:
        for key, rule in _COLUMN_RULES.items():
            if key in one["metadata"]:
                yield one["name"], rule
        if isinstance(one["type"], dict) and one["type"]["type"] == "struct":
            yield from _rules(one["type"])
