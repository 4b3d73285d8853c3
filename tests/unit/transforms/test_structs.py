"""Caches of changed schemas."""

from __future__ import annotations

from icestream.records.schema import STRING, ConnectSchema, Kind, struct
from icestream.transforms.structs import SchemaCache


def test_a_schema_is_changed_once_however_often_it_comes() -> None:
    asked: list[ConnectSchema] = []

    def change(schema: ConnectSchema) -> ConnectSchema:
        asked.append(schema)
        return schema.as_optional()

    cache: SchemaCache[ConnectSchema] = SchemaCache()
    for _ in range(3):
        assert cache.get(struct(("a", STRING)), change) == struct(("a", STRING), optional=True)
        assert cache.get(STRING, change) == ConnectSchema(Kind.STRING, optional=True)
    assert len(asked) == 2


def test_schemas_that_never_come_again_do_not_pile_up() -> None:
    cache: SchemaCache[int] = SchemaCache()
    for version in range(1_000):
        cache.get(ConnectSchema(Kind.STRING, version=version), lambda schema: schema.version or 0)
    assert len(cache._made) <= 64
