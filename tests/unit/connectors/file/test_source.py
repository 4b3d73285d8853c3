"""Lines as Java's FileStreamSource finds them, however they end and arrive; offsets that it takes by hand."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import BadOffsets, FatalError
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourceBatch
from icestream.connectors.file.source import FileSource, StdinSource, check_offsets
from icestream.records.column import Column


def at(path: Path, position: object) -> list[OffsetEntry]:
    return [OffsetEntry({"filename": str(path)}, {"position": position})]


def texts(batch: SourceBatch) -> list[str]:
    (records,) = batch.records
    assert isinstance(records.value, Column)
    found: list[str] = records.value.values.to_pylist()
    return found


def all_lines(source: FileSource | StdinSource, limit: int = 1000) -> list[str]:
    found: list[str] = []
    while (part := source.read(limit)) is not None:
        assert 0 < len(part) <= limit
        found += texts(part)
    return found


def java_lines(text: bytes) -> tuple[list[str], int]:
    """What the Java task extracts, byte by byte, and where it then stands."""
    found, start, index = [], 0, 0
    while index < len(text):
        size = 0
        if text[index : index + 1] == b"\n":
            size = 1
        elif text[index : index + 1] == b"\r":
            if index + 1 == len(text):
                break
            size = 2 if text[index + 1 : index + 2] == b"\n" else 1
        if size:
            found.append(text[start:index].decode(errors="replace"))
            start = index = index + size
        else:
            index += 1
    return found, start


def test_every_mixture_of_line_ends_is_read_as_java_does(tmp_path: Path) -> None:
    chance = random.Random(4)
    path = tmp_path / "lines.txt"
    pieces = [b"\n", b"\r", b"\r\n", b"a", b"bc", "ü🙂".encode(), b"\xff"]
    for _ in range(300):
        text = b"".join(chance.choice(pieces) for _ in range(chance.randrange(30)))
        path.write_bytes(text)
        source = FileSource(str(path), "t", 1000)
        source.seek([])
        expected, end = java_lines(text)
        found, last = [], None
        while (part := source.read(chance.randrange(1, 5))) is not None:
            found += texts(part)
            last = part.after[0].offset
        assert (found, last or {"position": 0}) == (expected, {"position": end}), text
        source.close()


def test_it_goes_on_where_it_stood_and_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    source = FileSource(str(path), "t", 1000)
    source.seek(at(path, 4))
    assert source.read(10) is None
    path.write_bytes(b"one\ntwo\nthr")
    assert all_lines(source) == ["two"]
    with path.open("ab") as file:
        file.write(b"ee\r")
    assert source.read(10) is None
    with path.open("ab") as file:
        file.write(b"\nfour\n")
    part = source.read(10)
    assert part is not None
    assert (part.records[0].topic, texts(part)) == ("t", ["three", "four"])
    assert part.after == at(path, path.stat().st_size)
    source.close()


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"x" * 5_000_000 + b"\nshort\n")
    source = FileSource(str(path), "t", 1000)
    assert [len(line) for line in all_lines(source)] == [5_000_000, 5]
    source.close()


def test_a_line_without_an_end_is_not_read_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\nunfinished")
    source = FileSource(str(path), "t", 1000)
    assert all_lines(source) == ["one"]
    with monkeypatch.context() as patch:
        patch.delattr("os.pread")
        assert source.read(10) is None
    with path.open("ab") as file:
        file.write(b" no more\n")
    assert all_lines(source) == ["unfinished no more"]
    source.seek([])
    assert all_lines(source) == ["one", "unfinished no more"]
    source.close()


def test_a_renamed_file_is_read_on_and_a_shortened_one_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\n")
    source = FileSource(str(path), "t", 1000)
    assert all_lines(source) == ["one", "two"]
    path.rename(tmp_path / "old.txt")
    path.write_bytes(b"other\n")
    with (tmp_path / "old.txt").open("ab") as file:
        file.write(b"three\n")
    assert all_lines(source) == ["three"]
    os.truncate(tmp_path / "old.txt", 3)
    assert source.read(10) is None
    with (tmp_path / "old.txt").open("ab") as file:
        file.write(b"\ntwo\nthree\nfour\n")
    assert all_lines(source) == ["four"]
    source.close()


def test_what_cannot_be_read_is_told_in_one_sentence(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "pipe"), (tmp_path, "folder")):
        source = FileSource(str(path), "t", 1000)
        with pytest.raises(FatalError, match=f"'{path}' is a {kind}, which cannot be read"):
            source.read(1)
        source.close()
    with pytest.raises(FatalError, match="'4', which is no number; reset the connector's offsets"):
        source.seek(at(tmp_path, "4"))


def test_standard_input_has_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr("icestream.connectors.file.source._STDIN", read)
    source = StdinSource("t", 1000)
    assert source.read(10) is None
    os.write(write, b"one\ntwo\nthr")
    first = source.read(1)
    assert first is not None
    assert texts(first) == ["one"]
    assert first.after == [OffsetEntry({"filename": None}, {"position": None})]
    os.write(write, b"ee\n")
    os.close(write)
    assert all_lines(source) == ["two", "three"]
    os.close(read)


def test_a_device_is_not_read() -> None:
    with pytest.raises(FatalError, match="'/dev/zero' is a device, which cannot be read"):
        FileSource("/dev/zero", "t", 1000).read(10)


def test_a_line_without_an_end_does_not_take_all_memory(tmp_path: Path) -> None:
    file = tmp_path / "endless"
    with file.open("wb") as stream:
        stream.truncate(200 * 2**20)
    with pytest.raises(FatalError, match="at position 0 has no end within 64 MiB"):
        FileSource(str(file), "t", 1000).read(10)


FILE = {"file": "/tmp/f"}


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"filename": "f"}, {}, "contain the key 'position'"),
        ({"filename": "f"}, {"position": "1"}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": 1.5}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": True}, "expected to be a Long value"),
        ({"filename": "f"}, {"position": -1}, "non-negative"),
        ({"other": "f"}, {"position": 1}, "contain the key 'filename'"),
        (None, {"position": 1}, "cannot be null"),
        ({"filename": []}, {"position": 1}, "field filename contains ARRAY"),
        ({"filename": "f"}, {"position": {}}, "field position contains MAP"),
    ],
)
def test_offsets_that_make_no_sense_are_refused(partition: Any, offset: Any, message: str) -> None:
    with pytest.raises(BadOffsets, match=message):
        check_offsets(FILE, [OffsetEntry(partition, offset)])


def test_good_ones_pass_and_anything_may_be_removed() -> None:
    check_offsets(FILE, [OffsetEntry({"filename": "other"}, {"position": 0}), OffsetEntry({"x": 1}, None)])
    with pytest.raises(BadOffsets, match="stdin is used"):
        check_offsets({}, [])
