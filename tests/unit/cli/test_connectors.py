"""The live table."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from icestream.api.status import Progress
from icestream.cli.connectors import ago, connectors_table, worst_state
from icestream.client import ConnectorView, TaskView


def shown(*views: ConnectorView) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=120).print(connectors_table(views, now=1000.0))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_shows_progress_with_the_time_since_the_commit() -> None:
    progress = Progress(lag=0, rows=120_000, rejected=3, last_commit_ms=996_000)
    view = ConnectorView("iceberg-sink-apilogs", "RUNNING", "w", None, (), progress)
    assert shown(view) == [
        "connector state lag last commit rows rejected",
        "iceberg-sink-apilogs RUNNING 0 4 s ago 120,000 3",
    ]


def test_a_worker_that_tells_no_progress_gets_dashes() -> None:
    assert shown(ConnectorView("a", "RUNNING", "w", None, ()))[1] == "a RUNNING - - - -"


def test_a_failed_task_is_a_failed_connector() -> None:
    assert (
        worst_state(ConnectorView("a", "RUNNING", "w", None, (TaskView(0, "FAILED", "w", "x"),))) == "FAILED"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s ago"), (59.9, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (172_800, "2 d ago")],
)
def test_time_as_people_say_it(seconds: float, text: str) -> None:
    assert ago(seconds) == text
