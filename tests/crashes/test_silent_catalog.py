"""A catalog that takes requests and never answers: the job waits for it and says so, then goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.crashes.conftest import MakePipeline
from tests.crashes.pipeline import Pipeline
from tests.crashes.processes import WorkerProcess
from tests.crashes.rest_catalog import SilentCatalog


@pytest.fixture
def behind(make_pipeline: MakePipeline) -> Pipeline:
    """The pipeline as it is without the REST catalog, whose tables the test reads."""
    return make_pipeline(**{"icestream.commit.rows": "500"})


@pytest.fixture
def catalog(behind: Pipeline) -> SilentCatalog:
    return SilentCatalog(behind.catalog)


@pytest.fixture
def worker(behind: Pipeline, catalog: SilentCatalog) -> Iterator[WorkerProcess]:
    behind.produce(range(4000), spoil=range(7))
    with catalog.serve() as address:
        rest = {
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": address,
            "iceberg.catalog.rest.client.socket-timeout-ms": "2000",
        }
        process = WorkerProcess(replace(behind, options={**behind.options, **rest}))
        yield process
        process.kill()


def test_a_catalog_that_stops_answering_in_mid_batch_is_an_outage_that_ends(
    behind: Pipeline, catalog: SilentCatalog, worker: WorkerProcess
) -> None:
    worker.wait(lambda: True if catalog.commits >= 2 else None, "no commits")
    catalog.hush()
    worker.wait_text("Read timed out")

    def told() -> str | None:
        message = str(worker.get("/health")["message"])
        return message if f"Connector '{behind.name}' is waiting for" in message else None

    message = worker.wait(told, "/health does not tell of it")
    assert "db.t" in message
    assert worker.get("/health")["status"] == "healthy", "the worker itself is well"
    progress = worker.wait(
        lambda: str(worker.get(f"/connectors/{behind.name}/status")) if catalog.ignored > 1 else None,
        "it is not asked again",
    )
    assert "RUNNING" in progress
    catalog.speak()
    worker.wait_settled(behind)
    behind.check()
    assert worker.state(behind) == "RUNNING"
