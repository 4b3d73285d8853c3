"""Messages in Confluent's wire format, by the schema that they name."""

from __future__ import annotations

from icestream.converters.registry.wire import head, split


def message(schema_id: int, body: bytes) -> bytes:
    return head(schema_id) + body


def test_messages_by_schema_with_tombstones_and_what_is_no_message() -> None:
    chunk = [message(7, b"a"), None, message(300, b""), b"", message(7, b"bc"), b"\0\0\0\0", b"\1\0\0\0\7x"]
    parts = split(chunk)
    assert {schema_id: (rows.tolist(), bodies.each()) for schema_id, rows, bodies in parts.by_id} == {
        7: ([0, 4], [b"a", b"bc"]),
        300: ([2], [b""]),
    }
    assert parts.nulls.tolist() == [1]
    assert parts.broken.tolist() == [3, 5, 6]


def test_an_id_takes_all_32_bits() -> None:
    ((schema_id, _, _),) = split([message(2**32 - 1, b"x")]).by_id
    assert schema_id == 2**32 - 1


def test_chunks_without_messages() -> None:
    assert list(split([]).by_id) == []
    assert list(split([None, b"x"]).by_id) == []
