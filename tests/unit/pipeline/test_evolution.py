"""A table grows with the records of a batch: new columns, wider ones, optional ones, in any mixture."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from tests.unit.pipeline.batches import World, reasons, rows_of

ENVELOPES = {"value.converter.schemas.enable": "true"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _struct(*fields: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **facts}


def _envelope(schema: dict[str, Any], payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def test_a_required_column_becomes_wider_and_optional_at_once(world: World) -> None:
    table = world.table(Schema(it.NestedField(1, "id", it.IntegerType(), required=True)))
    schema = _struct({"field": "id", "type": "int64", "optional": True})
    staged = world.staged(
        [_envelope(schema, {"id": 2**40}), _envelope(schema, {"id": None})], table, config=ENVELOPES
    )
    assert rows_of(staged) == [{"id": 2**40}, {"id": None}]
    assert not reasons(staged)


def test_a_required_struct_becomes_optional_and_gets_a_field(world: World) -> None:
    inner = it.StructType(it.NestedField(2, "n", it.IntegerType(), required=True))
    table = world.table(Schema(it.NestedField(1, "inner", inner, required=True)))
    fields = [{"field": "n", "type": "int64", "optional": True}, {"field": "new", "type": "string"}]
    schema = _struct(_struct(*fields, field="inner", optional=True))
    staged = world.staged(
        [_envelope(schema, {"inner": {"n": None, "new": "a"}}), _envelope(schema, {"inner": None})],
        table,
        config=ENVELOPES,
    )
    assert rows_of(staged) == [{"inner": {"n": None, "new": "a"}}, {"inner": None}]


def test_versions_of_a_map_in_one_batch_make_one_map(world: World) -> None:
    table = world.table(Schema(it.NestedField(1, "id", it.LongType())))

    def version(*names: str) -> dict[str, Any]:
        values = _struct(*({"field": name, "type": "int64"} for name in names))
        kind = {"field": "m", "type": "map", "keys": {"type": "string"}, "values": values}
        return _struct({"field": "id", "type": "int64"}, kind)

    staged = world.staged(
        [
            _envelope(version("a"), {"id": 1, "m": {"k": {"a": 1}}}),
            _envelope(version("a", "b"), {"id": 2, "m": {"k": {"a": 2, "b": 3}}}),
        ],
        table,
        config=ENVELOPES,
    )
    assert rows_of(staged) == [
        {"id": 1, "m": {"k": {"a": 1, "b": None}}},
        {"id": 2, "m": {"k": {"a": 2, "b": 3}}},
    ]
