"""One broker and one Spark session for all crash tests; a connector of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icestream.embedded.kafka import Broker, running_broker
from icestream.pipeline.session import open_session
from tests.crashes.harness import SPARK, Fault, Halt, ManagerProcess, Pipeline

MakePipeline = Callable[..., Pipeline]
StartManager = Callable[..., ManagerProcess]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("crashes")
            # Sockets that py4j leaves to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("crashes") / "kafka") as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return open_session(SPARK)


@pytest.fixture
def make_pipeline(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> MakePipeline:
    made = 0

    def make(tables: Sequence[str] = ("db.t",), **options: str) -> Pipeline:
        nonlocal made
        made += 1
        name = f"{request.node.name[:80]}-{made}".translate(str.maketrans("[]: ", "...."))
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
        waits: bool = False,
    ) -> ManagerProcess:
        process = ManagerProcess(pipeline, faults, halt, spark=spark, waits=waits)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
