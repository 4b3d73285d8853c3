"""One record that cannot land is rejected; the records around it land, whatever it is."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from tests.unit.pipeline.batches import World, reasons, rows_of

TABLE = Schema(
    it.NestedField(1, "id", it.LongType()),
    it.NestedField(2, "text", it.StringType()),
    it.NestedField(3, "price", it.DecimalType(10, 2)),
    it.NestedField(4, "at", it.TimestamptzType()),
)
SMT = "org.apache.kafka.connect.transforms."
CHAINS: dict[str, dict[str, str]] = {
    "none": {},
    "InsertField": {"type": f"{SMT}InsertField$Value", "static.field": "text", "static.value": "x"},
    "Cast": {"type": f"{SMT}Cast$Value", "spec": "text:string"},
    "Flatten": {"type": f"{SMT}Flatten$Value"},
}
POISON = {
    "deep list": b'{"new":' + b"[" * 950 + b"]" * 950 + b"}",
    "deep objects": b'{"text":' + b'{"a":' * 920 + b"1" + b"}" * 920 + b"}",
    "deep number": b'{"text":' + b"[" * 915 + b"1" + b"]" * 915 + b"}",
    "huge number": b'{"new":' + b"9" * 5000 + b"}",
    "huge text": b'{"text":' + b"9" * 5000 + b"}",
    "half a character and a huge number": b'{"text":"\\ud800","new":1e400}',
    "a list for a moment": b'{"at":[1]}',
    "not a number": b'{"price":"NaN"}',
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _config(chain: str) -> dict[str, str]:
    settings = CHAINS[chain]
    return {f"transforms.t.{key}": value for key, value in settings.items()} | (
        {"transforms": "t"} if settings else {}
    )


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("poison", POISON)
def test_only_the_poison_is_rejected(world: World, poison: str, chain: str) -> None:
    values = [b'{"id":0,"text":"a"}', POISON[poison], b'{"id":2,"text":"c"}']
    staged = world.staged(values, world.table(TABLE), config=_config(chain))
    assert [row["id"] for row in rows_of(staged)] == [0, 2]
    assert list(reasons(staged)) == [1]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_value_that_is_nested_deeply_becomes_a_column_of_text_below_some_level(
    world: World, chain: str
) -> None:
    values = [b'{"id":0}', b'{"id":1,"new":' + b"[" * 500 + b"1" + b"]" * 500 + b"}", b'{"id":2}']
    staged = world.staged(values, world.table(TABLE), config=_config(chain))
    assert [row["id"] for row in rows_of(staged)] == [0, 1, 2]
    assert not reasons(staged)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_number_beyond_all_doubles_is_infinite_whoever_its_neighbours_are(world: World, chain: str) -> None:
    fine, bad, new = b'{"id":0,"ratio":1e400}', b'{"id":"one"}', b'{"id":2,"ratio":-1e400,"new":3}'
    for number, values in enumerate(([fine, fine], [fine, bad], [fine, new], [new, bad, fine])):
        table = world.table(
            Schema(*TABLE.fields, it.NestedField(5, "ratio", it.DoubleType())), name=f"t{number}"
        )
        staged = world.staged(values, table, config=_config(chain))
        ratios = {row["id"]: row["ratio"] for row in rows_of(staged)}
        assert ratios == {0: math.inf} | ({2: -math.inf} if new in values else {})
        assert len(reasons(staged)) == values.count(bad)


def _envelope(kind: dict[str, Any], name: str, value: Any) -> bytes:
    fields = [{"field": "id", "type": "int64"}, {"field": name, "optional": True, **kind}]
    return json.dumps(
        {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, name: value}}
    ).encode()


def test_a_moment_that_no_table_holds_is_rejected_alone(world: World) -> None:
    kind = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1}
    values = [_envelope(kind, "at", moment) for moment in (0, 2**62, None)]
    staged = world.staged(values, world.table(TABLE), config={"value.converter.schemas.enable": "true"})
    assert [row["at"] for row in rows_of(staged)] == [datetime(1970, 1, 1, tzinfo=UTC), None]
    assert list(reasons(staged)) == [1]


def test_a_struct_with_bytes_in_a_column_of_text_is_rejected_alone(world: World) -> None:
    inner = {"type": "struct", "fields": [{"field": "raw", "type": "bytes", "optional": True}]}
    values = [_envelope(inner, "text", {"raw": raw}) for raw in (None, "AA==")]
    staged = world.staged(values, world.table(TABLE), config={"value.converter.schemas.enable": "true"})
    assert [row["text"] for row in rows_of(staged)] == ['{"raw":null}']
    assert list(reasons(staged)) == [1]


@pytest.mark.parametrize("chain", ["none", "InsertField", "Cast"])
def test_an_object_where_a_moment_should_be_is_rejected_alone(world: World, chain: str) -> None:
    values = [b'{"id":0}', b'{"at":{}}', b'{"id":2}']
    staged = world.staged(values, world.table(TABLE), config=_config(chain))
    assert [row["id"] for row in rows_of(staged)] == [0, 2]
    assert list(reasons(staged)) == [1]
