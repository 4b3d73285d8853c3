"""A connector of its own for each crash test, on the broker and the Spark session that all tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker
from tests.crashes.pipeline import Pipeline
from tests.crashes.processes import Fault, Halt, ManagerProcess

MakePipeline = Callable[..., Pipeline]
StartManager = Callable[..., ManagerProcess]
_NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/crashes/"):
            item.add_marker("crashes")
            # Sockets that py4j leaves to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture
def make_pipeline(broker: Broker, tmp_path: Path) -> MakePipeline:
    made = 0

    def make(tables: Sequence[str] = ("db.t",), **options: str) -> Pipeline:
        nonlocal made
        made += 1
        name = f"crash-{next(_NUMBERS)}"
        folder = tmp_path / str(made)
        folder.mkdir()
        return Pipeline(broker.bootstrap, folder, name, tables, options).create()

    return make


@pytest.fixture
def pipeline(make_pipeline: MakePipeline) -> Pipeline:
    return make_pipeline()


@pytest.fixture
def start_manager() -> Iterator[StartManager]:
    started: list[ManagerProcess] = []

    def start(
        pipeline: Pipeline,
        *faults: Fault,
        halt: Halt | None = None,
        spark: Mapping[str, str] | None = None,
        on_spark: bool = True,
        waits: bool = False,
    ) -> ManagerProcess:
        """Without Spark, batches run in the process itself: for kills at points that Spark has no part in."""
        process = ManagerProcess(pipeline, faults, halt, spark=spark, on_spark=on_spark, waits=waits)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
