"""Columns whose names no schema language likes."""

import json
from pathlib import Path

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from tests.unit.pipeline.batches import World, reasons, rows_of

INSERT = {
    "transforms": "t",
    "transforms.t.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.t.static.field": "id",
    "transforms.t.static.value": "7",
}


@pytest.mark.parametrize("config", [{}, INSERT], ids=["untouched", "edited"])
@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "tab\there", "ü 日本", "a.b", "type", "f0", " "])
def test_any_name_of_a_column_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, config: dict[str, str]
) -> None:
    world = World(tmp_path, monkeypatch)
    table = world.table(
        Schema(it.NestedField(1, "id", it.LongType()), it.NestedField(2, name, it.StringType()))
    )
    records = [{"id": 7, name: "a"}, {"id": 7, name: 5}, {"id": 7, name: "b", "new": 1}]
    staged = world.staged([json.dumps(one).encode() for one in records], table, config=config)
    assert not reasons(staged)
    assert [(row[name], row["new"]) for row in rows_of(staged)] == [("a", None), ("5", None), ("b", 1)]
