"""The keys that name schemas: what is taken, and what is refused with which words."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.records.json_source import JsonSource
from icestream.records.records import Records
from icestream.records.values import object_fields
from icestream.validation.schema import SchemaText
from icestream.validation.settings import SETTINGS, problems, schemas_of
from icestream.validation.validator import SchemaValidator, TopicSchemas

_OBJECT = '{"type":"object"}'


def _failed(schemas: TopicSchemas | None, value: bytes, topic: str = "orders") -> bool:
    assert schemas is not None
    records = Records(
        np.array([0]),
        topic,
        np.array([0]),
        pa.array([0], pa.int64()),
        None,
        object_fields(JsonSource([value])),
    )
    return bool(SchemaValidator(schemas).check(records).failed)


def _told(config: dict[str, str]) -> dict[str, str]:
    return {problem.key: problem.message for problem in problems(config)}


def test_without_keys_there_is_nothing_to_validate() -> None:
    assert schemas_of({"topics": "orders"}) is None
    assert problems({"topics": "orders"}) == []


def test_schemas_for_all_topics_and_for_one(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(_OBJECT)
    config = {
        "topics": "orders, eu.orders",
        "value.schema.inline": "true",
        "value.schema.eu.orders.file": str(file),
    }
    assert problems(config) == []
    schemas = schemas_of(config)
    assert schemas is not None
    assert schemas.of("orders") == SchemaText("true")
    assert schemas.of("eu.orders") == SchemaText(_OBJECT, file.as_uri())


def test_the_keys_are_known() -> None:
    assert SETTINGS.knows("value.schema.file")
    assert SETTINGS.knows("value.schema.orders.inline")
    assert not SETTINGS.knows("value.schemas.file")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "it is not JSON"),
        ("7", "it is neither a JSON object nor true nor false"),
        ('{"type":"strin"}', '/type: "strin" is not valid'),
        ('{"properties":{"a":{"pattern":"("}}}', '"(" is not a "regex"'),
        ('{"$ref":"#/$defs/none"}', "Pointer '/$defs/none' does not exist"),
        (
            '{"$ref":"http://127.0.0.1:1/x"}',
            "it refers to the document 'http://127.0.0.1:1/x': nothing is fetched",
        ),
        ('{"$ref":"common.json"}', "it refers to the document 'common.json': nothing is fetched"),
        ('{"$schema":"http://127.0.0.1:1/x"}', "$schema names a draft that nobody knows"),
        ("[" * 5_000, "it is nested too deeply"),
    ],
)
def test_what_is_no_schema_is_a_problem_of_its_key(schema: str, reason: str) -> None:
    for key in ("value.schema.inline", "value.schema.orders.inline"):
        (message,) = _told({key: schema}).values()
        assert message.startswith("Invalid value ")
        assert f"for configuration {key}: " in message
        assert reason in message
        assert "\n" not in message
        with pytest.raises(ConfigError, match="Invalid value"):
            schemas_of({key: schema})


def test_a_long_schema_does_not_hide_what_is_wrong_with_it() -> None:
    (message,) = _told({"value.schema.inline": json.dumps({"type": "x", "title": "t" * 1_000})}).values()
    assert len(message) < 300


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    (tmp_path / "large.json").write_bytes(b" " * 10_000_001)
    for name, reason in {
        "none.json": "there is no file",
        ".": "there is no file",
        "bytes.json": "is not UTF-8",
        "large.json": "is larger than 10 MB",
    }.items():
        assert reason in _told({"value.schema.file": str(tmp_path / name)})["value.schema.file"]


def test_file_and_inline_together_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(_OBJECT)
    told = _told({"value.schema.a.b.file": str(file), "value.schema.a.b.inline": _OBJECT})
    assert list(told) == ["value.schema.a.b.inline"]
    assert "there is value.schema.a.b.file, too; keep one of them" in told["value.schema.a.b.inline"]


@pytest.mark.parametrize("key", ["value.schema.orders", "value.schema.", "value.schema..file"])
def test_a_key_that_says_neither_file_nor_inline_is_refused(key: str) -> None:
    assert "value.schema.<topic>.file or value.schema.<topic>.inline" in _told({key: "true"})[key]


def test_a_topic_that_is_not_read_is_refused() -> None:
    config = {"topics": "orders", "value.schema.order.inline": "true"}
    (message,) = _told(config).values()
    assert "the connector does not read topic order, only orders" in message
    assert _told({"topics.regex": "o.*", "value.schema.order.inline": "true"}) == {}


def test_files_may_refer_to_files_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "schemas é"
    folder.mkdir()
    (folder / "common.json").write_text('{"$defs":{"id":{"$ref":"number.json"}}}')
    (folder / "number.json").write_text('{"type":"integer"}')
    file = folder / "order.json"
    file.write_text('{"properties":{"id":{"$ref":"common.json#/$defs/id"}}}')
    schemas = schemas_of({"value.schema.file": str(file)})
    for other in folder.iterdir():
        other.unlink()
    there = pickle.loads(pickle.dumps(schemas))  # in a task, elsewhere
    assert not _failed(there, b'{"id":1}')
    assert _failed(there, b'{"id":"1"}')


@pytest.mark.parametrize(
    ("other", "reason"), [(None, "there is no file"), ("{", "it is not JSON"), ('{"type":1}', "1 is not")]
)
def test_a_file_that_is_referred_to_and_wrong(tmp_path: Path, other: str | None, reason: str) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"$ref":"common.json"}')
    if other is not None:
        (tmp_path / "common.json").write_text(other)
    assert reason in _told({"value.schema.file": str(file)})["value.schema.file"]


def test_a_file_does_not_make_us_fetch(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"$ref":"http://127.0.0.1:1/common.json"}')
    assert "nothing is fetched" in _told({"value.schema.file": str(file)})["value.schema.file"]
