"""Offsets in the forms of Kafka Connect: bytes that Java wrote, and what we make of them."""

from __future__ import annotations

from icestream.api.offset_admin import OffsetEntry
from icestream.jobs.offsets.formats import entries_of, offset_key, parsed, serialized

# Written by java.io.ObjectOutputStream for {"k1": "v1", "k2": null}.
JAVA = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900"
    "097468726573686f6c6478703f4000000000000c77080000001000000002757200025b42acf317f8060854e002000078700000"
    "00026b317571007e0002000000027631" + "7571007e0002000000026b32" + "7078"
)


def test_javas_bytes_are_read_and_written() -> None:
    assert parsed(JAVA) == {b"k1": b"v1", b"k2": None}
    assert serialized({b"k1": b"v1", b"k2": None}) == JAVA


def test_keys_are_those_of_kafka_connect() -> None:
    assert offset_key("c", {"filename": "/tmp/ü 🙂\x1f"}) == (
        '["c",{"filename":"/tmp/ü \\uD83D\\uDE42\\u001F"}]'.encode()
    )


def test_the_last_record_of_a_key_counts_and_strange_ones_do_not() -> None:
    key = b'["c",{"filename":"f"}]'
    stored = [
        (key, b'{"position":1}'),
        (b'["c", {"filename": "f"}]', b'{"position":2}'),
        (b'["d",{"filename":"f"}]', b'{"position":3}'),
        (b"no json", b"{}"),
        (b'["c"]', b"{}"),
        (b'["c",{"filename":"g"}]', b"{}"),
        (b'["c",{"filename":"g"}]', None),
        (b'["c",{"filename":"h"}]', b"no json"),
    ]
    assert entries_of("c", stored) == [OffsetEntry({"filename": "f"}, {"position": 2})]
