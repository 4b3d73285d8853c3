"""The file of FileStreamSink and its journal, through every end that an append can have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icestream.api.errors import FatalError, SinkUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.file.line_file import Landed, LineFile

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


def crash(path: Path, landed: Landed, text: bytes, point: str, connector: str = "c") -> None:
    with pytest.raises(Crash):
        LineFile(path, connector, crash_at(point)).append(landed, text)  # type: ignore[arg-type]


def half_write(path: Path, text: bytes) -> None:
    """An append that was killed in the middle."""
    crash(path, batch(0, 1), text, "journaled")
    with path.open("ab") as file:
        file.write(text[: len(text) // 2])


@pytest.mark.parametrize("text", [b"half\n", b"long\n" * 5000])
def test_what_was_half_done_is_cut_off(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    half_write(path, text)
    assert LineFile(path, "c").pending() is None
    assert path.read_bytes() == b"before\n"


def test_what_was_all_but_done_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    crash(path, batch(0, 1), b"whole\n", "written")
    assert LineFile(path, "c").pending() == batch(0, 1)
    assert path.read_bytes() == b"whole\n"


@pytest.mark.parametrize("point", ["journaled", "written"])
@pytest.mark.parametrize("others", [b"x\n", b"precious lines of another program\n"])
def test_lines_of_others_after_a_crash_are_not_cut_off(tmp_path: Path, point: str, others: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    crash(path, batch(0, 1), b"ours\n", point)
    with path.open("ab") as other:
        other.write(others)
    has_ours = point == "written"
    assert LineFile(path, "c").pending() == (batch(0, 1) if has_ours else None)
    assert path.read_bytes() == b"before\n" + (b"ours\n" if has_ours else b"") + others


@pytest.mark.parametrize("content", [b"", b"bef", b"what another program wrote\n"])
def test_a_file_that_was_emptied_or_rewritten_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    crash(path, batch(0, 1), b"ours\n", "written")
    path.write_bytes(content)
    assert LineFile(path, "c").pending() is None
    assert path.read_bytes() == content


def test_a_link_to_the_file_has_the_same_journal(tmp_path: Path) -> None:
    path, link = tmp_path / "out.txt", tmp_path / "link.txt"
    half_write(path, b"half\n")
    link.symlink_to(path)
    LineFile(link, "other").append(batch(0, 1), b"other\n")
    assert LineFile(path, "c").pending() is None
    assert path.read_bytes() == b"other\n"


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
    crash(path, batch(1, 2), b"half", "journaled", "a")
    with path.open("ab") as file:
        file.write(b"ha")
    LineFile(path, "b").append(batch(0, 9), b"b\n")
    assert path.read_bytes() == b"a\nb\n"
    assert LineFile(path, "a").pending() == batch(0, 1)
    assert LineFile(path, "b").pending() == batch(0, 9)


def test_a_file_that_was_replaced_meanwhile_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    crash(path, batch(0, 1), b"half", "written")
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


def test_a_pipe_is_written_once_somebody_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(SinkUnavailable, match="nobody reads the pipe"):
        LineFile(path, "c")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    LineFile(path, "c").append(batch(0, 1), b"x\n")
    assert os.read(reader, 10) == b"x\n"
    os.close(reader)


def test_a_strange_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / ".out.txt.icestream").write_text("{}")
    with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
        LineFile(tmp_path / "out.txt", "c").pending()
    (tmp_path / ".out.txt.icestream").write_text('{"format": 1, "writing": {"length": 1}, "landed": {}}')
    with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
        LineFile(tmp_path / "out.txt", "c").pending()
    (tmp_path / ".other.txt.icestream").mkdir()
    with pytest.raises(SinkUnavailable, match=r"cannot read .*Is a directory"):
        LineFile(tmp_path / "other.txt", "c").pending()
