"""The file of FileStreamSink and its journal, through every end that an append can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.sinks.file_stream import Landed, LineFile

P = Partition("t", 0)


class Crash(BaseException):
    """Ends an append as a kill would: nothing is put in order."""


def batch(start: int, end: int) -> Landed:
    return Landed(f"commit-{end}", Offsets({P: start}), Offsets({P: end}))


def crash_at(wanted: str) -> object:
    def reached(point: str) -> None:
        if point == wanted:
            raise Crash

    return reached


def test_a_batch_is_pending_until_it_is_settled(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    file = LineFile(path, "c")
    assert file.pending() is None
    file.append(batch(0, 2), b"one\ntwo\n")
    assert LineFile(path, "c").pending() == batch(0, 2)
    file.settle()
    assert file.pending() is None
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize(("point", "text"), [("journaled", b"before\n"), ("written", b"before\n")])
def test_what_was_half_done_is_cut_off(tmp_path: Path, point: str, text: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    with pytest.raises(Crash):
        LineFile(path, "c", crash_at(point)).append(batch(0, 1), b"half")  # type: ignore[arg-type]
    assert LineFile(path, "c").pending() is None
    assert path.read_bytes() == text


def test_lines_of_others_after_a_whole_append_stay(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    LineFile(path, "c").append(batch(0, 1), b"ours\n")
    with path.open("ab") as other:
        other.write(b"by hand\n")
    assert LineFile(path, "c").pending() == batch(0, 1)
    assert path.read_bytes() == b"ours\nby hand\n"


def test_a_second_connector_clears_up_after_the_first(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    first = LineFile(path, "a")
    first.append(batch(0, 1), b"a\n")
    with pytest.raises(Crash):
        LineFile(path, "a", crash_at("written")).append(batch(1, 2), b"half")  # type: ignore[arg-type]
    LineFile(path, "b").append(batch(0, 9), b"b\n")
    assert path.read_bytes() == b"a\nb\n"
    assert LineFile(path, "a").pending() == batch(0, 1)
    assert LineFile(path, "b").pending() == batch(0, 9)


def test_a_file_that_was_replaced_meanwhile_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with pytest.raises(Crash):
        LineFile(path, "c", crash_at("written")).append(batch(0, 1), b"half")  # type: ignore[arg-type]
    path.rename(tmp_path / "rotated.txt")
    path.write_bytes(b"a new file, longer than the old one\n")
    assert LineFile(path, "c").pending() is None
    assert path.read_bytes() == b"a new file, longer than the old one\n"


def test_a_job_that_writes_keeps_others_waiting(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    other = LineFile(path, "b")

    def meanwhile(point: str) -> None:
        with pytest.raises(SinkUnavailable, match="another job is writing"):
            other.append(batch(0, 1), b"b\n")

    LineFile(path, "a", meanwhile).append(batch(0, 1), b"a\n")
    other.append(batch(0, 1), b"b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_what_is_no_file_has_no_journal(tmp_path: Path) -> None:
    LineFile(Path("/dev/null"), "c").append(batch(0, 1), b"x\n")
    assert not Path("/dev/.null.icestream").exists()
    with pytest.raises(FatalError, match=r"Couldn't find or create file '.*/none/out\.txt'"):
        LineFile(tmp_path / "none" / "out.txt", "c")


def test_a_strange_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / ".out.txt.icestream").write_text("{}")
    with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
        LineFile(tmp_path / "out.txt", "c").pending()
