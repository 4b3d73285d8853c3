"""Time limits around a table that does not answer."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from icestream.api.errors import CommitUnknown, SinkUnavailable
from icestream.api.offsets import NOTHING
from icestream.jobs.limited_table import LimitedTable


class StuckTable:
    name = "db.t"

    def __init__(self) -> None:
        self.answers = threading.Event()

    def found(self) -> str:
        self.answers.wait()
        return "found"

    def commit(self, *arguments: Any, **named: Any) -> str:
        self.answers.wait()
        return "receipt"


@pytest.fixture
def made() -> list[StuckTable]:
    return []


@pytest.fixture
def table(made: list[StuckTable]) -> LimitedTable:
    def make() -> Any:
        made.append(StuckTable())
        return made[-1]

    return LimitedTable(make, seconds=0.05)


def test_a_table_that_does_not_answer_is_away_and_another_is_asked_next(
    table: LimitedTable, made: list[StuckTable]
) -> None:
    with pytest.raises(SinkUnavailable, match=r"reading db\.t: no answer of its catalog or object store"):
        table.found()
    made[-1].answers.set()
    assert cast(Any, table.found()) == "found"
    assert len(made) == 2
    made[0].answers.set()


def test_a_commit_without_an_answer_may_have_landed(table: LimitedTable, made: list[StuckTable]) -> None:
    with pytest.raises(CommitUnknown, match="may land all the same"):
        table.commit(
            [], cast(Any, None), expect=NOTHING, new_fields={}, written_with=cast(Any, None), summary={}
        )
    made[0].answers.set()
