"""Kafka Connect's offsets file: bytes that Java wrote, and what we make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.api.offset_admin import OffsetEntry
from icestream.jobs.offset_file import OffsetFile, parsed, serialized
from icestream.jobs.offset_records import entries_of, offset_key

# Written by java.io.ObjectOutputStream for {"k1": "v1", "k2": null}.
JAVA = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900"
    "097468726573686f6c6478703f4000000000000c77080000001000000002757200025b42acf317f8060854e002000078700000"
    "00026b317571007e0002000000027631" + "7571007e0002000000026b32" + "7078"
)


def test_javas_bytes_are_read_and_written() -> None:
    assert parsed(JAVA) == {b"k1": b"v1", b"k2": None}
    assert serialized({b"k1": b"v1", b"k2": None}) == JAVA


def test_many_entries_survive_and_none_removes(tmp_path: Path) -> None:
    file = OffsetFile(tmp_path / "offsets")
    for number in range(100):
        file.write(f"c{number % 2}", [OffsetEntry({"filename": f"/ü/{number}"}, {"position": number})])
    file.write("c1", [OffsetEntry({"filename": f"/ü/{number}"}, None) for number in range(3, 100, 2)])
    again = OffsetFile(tmp_path / "offsets")
    assert again.read("c1") == [OffsetEntry({"filename": "/ü/1"}, {"position": 1})]
    assert len(again.read("c0")) == 50
    assert [path.name for path in tmp_path.iterdir()] == ["offsets"]


def test_no_file_and_an_empty_one_have_no_offsets(tmp_path: Path) -> None:
    assert OffsetFile(tmp_path / "offsets").read("c") == []
    (tmp_path / "offsets").touch()
    assert OffsetFile(tmp_path / "offsets").read("c") == []


@pytest.mark.parametrize(
    "content", [b"x", JAVA[:-20], JAVA.replace(b"HashMap", b"TreeMap"), b"\xac\xed\x00\x05sr"]
)
def test_any_other_file_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "offsets").write_bytes(content)
    with pytest.raises(PreconditionError, match="offsets does not hold offsets of Kafka Connect"):
        OffsetFile(tmp_path / "offsets").read("c")


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
