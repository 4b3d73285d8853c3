"""The file of FileStreamSink and its journal, through every end that an append can have."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from icestream.api.batch import Batch, Counts, Staged
from icestream.api.checkpoint import Checkpoint, TopicIds, checkpoint_after
from icestream.api.errors import CommitConflict, FatalError, SinkUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.file import journal as journal_module
from icestream.connectors.file.journal import Append, Journal
from icestream.connectors.file.sink import LineFile

P = Partition("t", 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_LOCK_SECONDS", 0.1)


class Crash(BaseException):
    """Ends an append as a kill would: nothing is put in order."""


class CrashingJournal(Journal):
    def __init__(self, journal: Journal, point: str) -> None:
        super().__init__(journal._path)
        self._point = point

    def begin(self, append: Append) -> None:
        super().begin(append)
        if self._point == "journaled":
            raise Crash

    def end(self, connector: str, checkpoint: Checkpoint) -> None:
        if self._point == "written":
            raise Crash
        super().end(connector, checkpoint)


def append(file: LineFile, start: int, end: int, text: bytes) -> None:
    """Commit a batch as the sink manager does."""
    before = file.found().checkpoint
    batch = Batch(f"commit-{end}", Offsets({P: start}), Offsets({P: end}))
    after = checkpoint_after(before, batch, {P: Counts(end - start, end - start)}, TopicIds("c", {"t": "i"}))
    file.commit(Commit(after, before, None, Staged([text], end - start)))


def reached(path: Path, connector: str = "c") -> int:
    """The offset up to which the file has the records."""
    checkpoint = LineFile(path, connector).found().checkpoint
    return checkpoint.offsets[P] if checkpoint else 0


def test_a_batch_is_there_with_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    file = LineFile(path, "c")
    assert file.found().checkpoint is None
    assert not path.exists()
    append(file, 0, 2, b"one\ntwo\n")
    assert reached(path) == 2
    assert reached(path, "another") == 0
    append(file, 2, 3, b"three\n")
    assert (reached(path), path.read_bytes()) == (3, b"one\ntwo\nthree\n")


def test_a_commit_on_another_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    slow, fast = LineFile(path, "c"), LineFile(path, "c")
    before = slow.found().checkpoint
    append(fast, 0, 1, b"one\n")
    late = checkpoint_after(
        before, Batch("late", Offsets({P: 0}), Offsets({P: 1})), {P: Counts(1, 1)}, TopicIds("c", {})
    )
    with pytest.raises(CommitConflict, match="somebody else committed"):
        slow.commit(Commit(late, before, None, Staged([b"one\n"], 1)))
    assert path.read_bytes() == b"one\n"


def test_a_journal_of_an_older_build_leaves_the_offsets_to_the_group(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    (tmp_path / ".out.txt.icestream").write_text('{"format": 1, "writing": null, "landed": {}}')
    found = LineFile(path, "c").found()
    assert (found.checkpoint, found.follows_group) == (None, True)
    append(LineFile(path, "c"), 5, 6, b"six\n")
    assert (reached(path), path.read_bytes()) == (6, b"before\nsix\n")


def test_a_batch_that_only_a_journal_of_an_older_build_knows_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    landed = '{"c": {"commit": "x", "start": {"t": {"0": 0}}, "end": {"t": {"0": 1}}}}'
    (tmp_path / ".out.txt.icestream").write_text(f'{{"format": 1, "writing": null, "landed": {landed}}}')
    with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
        LineFile(path, "c").found()


def crash(path: Path, start: int, end: int, text: bytes, point: str, connector: str = "c") -> None:
    file = LineFile(path, connector)
    file.plan({})
    assert file._journal is not None
    file._journal = CrashingJournal(file._journal, point)
    with pytest.raises(Crash):
        append(file, start, end, text)


def half_write(path: Path, text: bytes) -> None:
    """An append that was killed in the middle."""
    crash(path, 0, 1, text, "journaled")
    with path.open("ab") as file:
        file.write(text[: len(text) // 2])


@pytest.mark.parametrize("text", [b"half\n", b"long\n" * 5000])
def test_what_was_half_done_is_cut_off(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    half_write(path, text)
    assert reached(path) == 0
    assert path.read_bytes() == b"before\n"


def test_what_was_all_but_done_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    crash(path, 0, 1, b"whole\n", "written")
    assert reached(path) == 1
    assert path.read_bytes() == b"whole\n"


@pytest.mark.parametrize("point", ["journaled", "written"])
@pytest.mark.parametrize("others", [b"x\n", b"precious lines of another program\n"])
def test_lines_of_others_after_a_crash_are_not_cut_off(tmp_path: Path, point: str, others: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    crash(path, 0, 1, b"ours\n", point)
    with path.open("ab") as other:
        other.write(others)
    has_ours = point == "written"
    assert reached(path) == int(has_ours)
    assert path.read_bytes() == b"before\n" + (b"ours\n" if has_ours else b"") + others


@pytest.mark.parametrize("content", [b"", b"bef", b"what another program wrote\n"])
def test_a_file_that_was_emptied_or_rewritten_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"before\n")
    crash(path, 0, 1, b"ours\n", "written")
    path.write_bytes(content)
    assert reached(path) == 0
    assert path.read_bytes() == content


def test_a_link_to_the_file_has_the_same_journal(tmp_path: Path) -> None:
    path, link = tmp_path / "out.txt", tmp_path / "link.txt"
    half_write(path, b"half\n")
    link.symlink_to(path)
    append(LineFile(link, "other"), 0, 1, b"other\n")
    assert reached(path) == 0
    assert path.read_bytes() == b"other\n"


def test_lines_of_others_after_a_whole_append_stay(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    append(LineFile(path, "c"), 0, 1, b"ours\n")
    with path.open("ab") as other:
        other.write(b"by hand\n")
    assert reached(path) == 1
    assert path.read_bytes() == b"ours\nby hand\n"


def test_a_second_connector_clears_up_after_the_first(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    first = LineFile(path, "a")
    append(first, 0, 1, b"a\n")
    crash(path, 1, 2, b"half", "journaled", "a")
    with path.open("ab") as file:
        file.write(b"ha")
    append(LineFile(path, "b"), 0, 9, b"b\n")
    assert path.read_bytes() == b"a\nb\n"
    assert reached(path, "a") == 1
    assert reached(path, "b") == 9


def test_a_file_that_was_replaced_meanwhile_is_not_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "out.txt"
    crash(path, 0, 1, b"half", "written")
    path.rename(tmp_path / "rotated.txt")
    path.write_bytes(b"a new file, longer than the old one\n")
    assert reached(path) == 0
    assert path.read_bytes() == b"a new file, longer than the old one\n"
    assert "or replaced it, during an append" in caplog.text


def test_a_file_that_is_renamed_while_the_job_runs_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    file = LineFile(path, "c")
    append(file, 0, 1, b"one\n")
    path.rename(tmp_path / "rotated.txt")
    # As the manager does when it looks around: what it finds is what the next commit is compared with.
    append(file, 1, 2, b"two\n")
    assert (tmp_path / "rotated.txt").read_bytes() == b"one\ntwo\n"
    append(LineFile(path, "c"), 2, 3, b"three\n")
    assert (reached(path), path.read_bytes()) == (3, b"three\n")


def test_a_file_that_is_gone_is_still_known_to_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    append(LineFile(path, "c"), 0, 1, b"one\n")
    path.unlink()
    assert reached(path) == 1
    assert not path.exists()
    crash(path, 1, 2, b"two\n", "written")
    path.unlink()
    assert reached(path) == 1
    append(LineFile(path, "c"), 1, 2, b"two\n")
    assert (reached(path), path.read_bytes()) == (2, b"two\n")


def test_jobs_of_a_file_and_of_the_one_that_replaced_it_do_not_meet_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    old = LineFile(path, "a")
    append(old, 0, 1, b"a\n")
    path.rename(tmp_path / "rotated.txt")
    new = LineFile(path, "b")
    new.plan({})
    assert old._journal is not None
    with old._journal.locked(), pytest.raises(SinkUnavailable, match="another job is writing"):
        append(new, 0, 1, b"b\n")


def test_whoever_only_looks_waits_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    writing = LineFile(path, "c")
    append(writing, 0, 1, b"one\n")
    assert writing._journal is not None
    with writing._journal.locked():
        assert reached(path) == 1


def test_looking_at_a_pipe_does_not_open_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert LineFile(path, "c").found().checkpoint is None


def test_a_job_that_writes_keeps_others_waiting(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    writing, other = LineFile(path, "a"), LineFile(path, "b")
    writing.plan({})
    assert writing._journal is not None
    with writing._journal.locked(), pytest.raises(SinkUnavailable, match="another job is writing"):
        append(other, 0, 1, b"b\n")
    append(writing, 0, 1, b"a\n")
    append(other, 0, 1, b"b\n")
    assert path.read_bytes() == b"a\nb\n"


def test_what_is_no_file_has_no_journal(tmp_path: Path) -> None:
    append(LineFile(Path("/dev/null"), "c"), 0, 1, b"x\n")
    assert not Path("/dev/.null.icestream").exists()
    with pytest.raises(FatalError, match=r"Couldn't find or create file '.*/none/out\.txt'"):
        LineFile(tmp_path / "none" / "out.txt", "c").plan({})


def test_a_pipe_is_written_once_somebody_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(SinkUnavailable, match="nobody reads the pipe"):
        LineFile(path, "c").plan({})
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    append(LineFile(path, "c"), 0, 1, b"x\n")
    assert os.read(reader, 10) == b"x\n"
    os.close(reader)


def test_a_strange_journal_is_told(tmp_path: Path) -> None:
    path, journal = tmp_path / "out.txt", tmp_path / ".out.txt.icestream"
    path.touch()
    for text in ("{}", '{"format": 2, "writing": {"length": 1}, "checkpoints": {}}', '{"format": 9}'):
        journal.write_text(text)
        with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
            LineFile(path, "c").found()
    journal.unlink()
    journal.mkdir()
    with pytest.raises(SinkUnavailable, match=r"cannot read .*Is a directory"):
        LineFile(path, "c").found()


@pytest.mark.parametrize(
    "planted",
    [
        b"[" * 100_000,
        b"\xff",
        b"[]",
        b'{"format":2,"writing":{"inode":1,"length":1e300},"checkpoints":{}}',
        b'{"format":2,"writing":{"inode":1,"length":0,"size":1e18,"checksum":0},"checkpoints":{}}',
        b'{"format":2,"writing":{"inode":1,"length":-1,"size":1,"checksum":0},"checkpoints":{}}',
        b'{"format":2,"writing":{"inode":1,"length":"x","size":1,"checksum":0},"checkpoints":{}}',
    ],
)
def test_a_journal_that_somebody_planted_is_refused_in_a_sentence(tmp_path: Path, planted: bytes) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"line\n")
    (tmp_path / ".out.txt.icestream").write_bytes(planted)
    with pytest.raises(FatalError, match="is not a journal of FileStreamSink"):
        append(LineFile(path, "c"), 0, 1, b"more\n")
    assert path.read_bytes() == b"line\n"


def test_a_journal_that_is_a_device_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"")
    journal = tmp_path / ".out.txt.icestream"
    journal.symlink_to("/dev/zero")
    with pytest.raises(SinkUnavailable, match="not a regular file"):
        append(LineFile(path, "c"), 0, 1, b"more\n")
    journal.unlink()
    os.mkfifo(journal)
    with pytest.raises(SinkUnavailable, match="not a regular file"):
        append(LineFile(path, "c"), 0, 1, b"more\n")


@pytest.mark.parametrize("kind", ["tmp", "lock"])
def test_no_journal_is_written_through_a_link(tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / f".out.txt.icestream.{kind}").symlink_to(victim)
    with contextlib.suppress(SinkUnavailable):
        append(LineFile(tmp_path / "out.txt", "c"), 0, 1, b"more\n")
    assert victim.read_bytes() == b"precious"
