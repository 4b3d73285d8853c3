"""Time limits around a table that does not answer."""

from __future__ import annotations

import datetime as dt
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from icestream.api.batch import Staged
from icestream.api.checkpoint import Checkpoint, TopicIds
from icestream.api.errors import CommitUnknown, SinkUnavailable
from icestream.api.sink import Commit, Sink, Target
from icestream.connectors.file.plugin import FileSinkPlugin
from icestream.deadlines import Overdue
from icestream.jobs.sinks import limited_sink
from icestream.jobs.sinks.limited_sink import LimitedSink


class StuckTarget:
    name = "db.t"

    def __init__(self) -> None:
        self.answers = threading.Event()

    def found(self) -> str:
        self.answers.wait()
        return "found"

    def commit(self, commit: Any) -> str:
        self.answers.wait()
        return "receipt"


class StuckSink(Sink):
    writer: Any = None

    def __init__(self, target: StuckTarget) -> None:
        self._stuck = target
        self.is_closed = threading.Event()

    def close(self) -> None:
        self.is_closed.set()

    def targets(self) -> Any:
        return [self._stuck]


@pytest.fixture
def made() -> list[StuckTarget]:
    return []


@pytest.fixture
def target(made: list[StuckTarget]) -> Target:
    def open_sink() -> Any:
        made.append(StuckTarget())
        return StuckSink(made[-1])

    return LimitedSink(open_sink, seconds=0.05).targets()[0]


def test_a_table_that_does_not_answer_is_away_and_another_is_asked_next(
    target: Target, made: list[StuckTarget]
) -> None:
    with pytest.raises(SinkUnavailable, match=r"reading db\.t: no answer of its catalog or object store"):
        target.found()
    made[-1].answers.set()
    assert cast(Any, target.found()) == "found"
    assert len(made) == 2
    made[0].answers.set()


def test_a_sink_that_was_left_behind_is_closed_when_it_answers_after_all() -> None:
    opened: list[StuckSink] = []

    def open_sink() -> Sink:
        opened.append(StuckSink(StuckTarget()))
        return opened[-1]

    limited = LimitedSink(open_sink, seconds=0.05)
    with pytest.raises(SinkUnavailable):
        limited.targets()[0].found()
    left, current = opened
    assert not left.is_closed.is_set()
    left.targets()[0].answers.set()
    assert left.is_closed.wait(60)
    assert not current.is_closed.is_set()
    limited.close()
    assert current.is_closed.is_set()


def test_of_two_that_wait_for_a_sink_one_opens_another(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Sink] = []
    waiting: list[str] = []

    def open_sink() -> Sink:
        opened.append(StuckSink(StuckTarget()))
        return opened[-1]

    target = LimitedSink(open_sink, seconds=60).targets()[0]

    def no_answer(seconds: float, call: Any, name: str, too_late: Any) -> Any:
        waiting.append(name)
        if len(waiting) == 1:
            with pytest.raises(SinkUnavailable):
                target.found()
        raise Overdue

    monkeypatch.setattr(limited_sink, "within", no_answer)
    with pytest.raises(SinkUnavailable):
        target.found()
    assert (len(waiting), len(opened)) == (2, 2)


def test_a_sweep_closes_the_sink_that_it_has_opened() -> None:
    opened: list[StuckSink] = []

    def open_sink() -> Sink:
        opened.append(StuckSink(cast(Any, SimpleNamespace(name="db.t", sweep=lambda landed, now: 3))))
        return opened[-1]

    target = LimitedSink(open_sink, seconds=60).targets()[0]
    assert target.sweep("landed", dt.datetime.now(dt.UTC)) == 3
    assert [sink.is_closed.is_set() for sink in opened] == [False, True]


def test_a_commit_without_an_answer_may_have_landed(target: Target, made: list[StuckTarget]) -> None:
    with pytest.raises(CommitUnknown, match="may land all the same"):
        target.commit(cast(Any, None))
    made[0].answers.set()


def test_a_commit_has_a_limit_of_its_own(made: list[StuckTarget]) -> None:
    def open_sink() -> Any:
        made.append(StuckTarget())
        return StuckSink(made[-1])

    target = LimitedSink(open_sink, seconds=3600, commit_seconds=0.02).targets()[0]
    with pytest.raises(
        CommitUnknown, match=r"committing to db\.t: no answer .* in 0\.02 s; the commit may land"
    ):
        target.commit(cast(Any, None))
    made[0].answers.set()


def test_a_pipe_whose_reader_rests_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    opened: list[Sink] = []

    def open_sink() -> Sink:
        opened.append(FileSinkPlugin().open("x", {"file": str(path)}))
        return opened[-1]

    target = LimitedSink(open_sink, FileSinkPlugin.answer_seconds and 0.05).targets()[0]
    text = b"more than a pipe holds\n" * 10_000
    checkpoint = Checkpoint("c", None, TopicIds("", {}))
    commit = threading.Thread(
        target=target.commit, args=[Commit(checkpoint, None, None, Staged([text], 1))], daemon=True
    )
    commit.start()
    commit.join(0.5)
    assert commit.is_alive()
    os.set_blocking(reader, True)
    read = b""
    while len(read) < len(text):
        read += os.read(reader, 65_536)
    commit.join()
    assert (read, len(opened)) == (text, 1)
    os.close(reader)
