"""A Spark session that goes away and comes back, with Spark played by a fake."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from icestream.api.errors import SinkUnavailable
from icestream.pipeline.lasting_session import LastingSession

NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)


@dataclass
class FakeSpark:
    """Sessions are numbers; those in `dead` do not answer."""

    opened: int = 0
    dead: set[int] = field(default_factory=set)
    let_gone: list[int] = field(default_factory=list)
    refuses: str = ""
    is_ours: bool = False

    def open(self) -> Any:
        if self.refuses:
            raise RuntimeError(self.refuses)
        self.opened += 1
        return self.opened

    def answers(self, session: Any, seconds: float) -> bool:
        return session not in self.dead

    def let_go(self, session: Any) -> None:
        self.let_gone.append(session)

    def lacks_own_process(self) -> bool:
        return self.is_ours


@pytest.fixture
def spark() -> FakeSpark:
    return FakeSpark()


@pytest.fixture
def session(spark: FakeSpark) -> LastingSession:
    return LastingSession(cast(Any, spark), lambda: NOW)


def test_a_session_that_answers_stays(session: LastingSession, spark: FakeSpark) -> None:
    session.turn()
    assert cast(Any, session.current()) == 1
    assert session.outage is None
    assert not session.has_lost(cast(Any, 1))


def test_a_session_that_died_is_opened_again(session: LastingSession, spark: FakeSpark) -> None:
    spark.dead.add(1)
    assert session.has_lost(cast(Any, 1))
    session.turn()
    assert cast(Any, session.current()) == 2
    assert spark.let_gone == [1]
    assert session.outage is None
    assert session.has_lost(cast(Any, 1)), "an error of the old session came of its death"


def test_while_it_is_away_jobs_hear_since_when_and_why(session: LastingSession, spark: FakeSpark) -> None:
    spark.dead.add(1)
    spark.refuses = "no memory\nmore words"
    waits = [session.turn() for _ in range(6)]
    assert waits == sorted(waits), "it waits longer and longer"
    assert waits[-1] <= 30
    with pytest.raises(SinkUnavailable, match=r"Spark is away since 2026-11-16T12:00:00.*no memory$"):
        session.current()
    spark.refuses = ""
    session.turn()
    assert cast(Any, session.current()) == 2


def test_a_new_session_that_does_not_answer_is_not_used(session: LastingSession, spark: FakeSpark) -> None:
    spark.dead.update((1, 2))
    session.turn()
    with pytest.raises(SinkUnavailable):
        session.current()
    session.turn()
    assert cast(Any, session.current()) == 3
