"""A catalog that takes requests and never answers: the job waits for it and says so, then goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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
            "iceberg.catalog.rest.client.socket-timeout-ms": "1000",
            "icestream.circuit.failures": "2",
            "icestream.circuit.open.ms": "4000",
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
    status = worker.wait(lambda: _held(worker, behind), "its circuit breaker does not open")
    assert status["connector"]["state"] == status["tasks"][0]["state"] == "RUNNING"
    assert status["tasks"][0]["trace"].startswith("Circuit breaker of the catalog at 127.0.0.1:")
    assert "Read timed out" in status["connector"]["trace"]
    worker.wait_text("Circuit breaker of the catalog at 127.0.0.1:")
    shown = worker.get("/connectors?expand=progress")[behind.name]["progress"]["circuit"]
    assert shown["destination"].startswith("the catalog at 127.0.0.1:")
    assert shown["state"] in ("open", "half-open")
    assert shown["failures"] >= 2
    before = behind.group_offsets()
    asked = catalog.ignored
    worker.wait(lambda: True if catalog.ignored > asked else None, "nobody asks whether it is back")
    assert behind.group_offsets() == before, "the job keeps its place"
    catalog.speak()
    worker.wait_settled(behind)
    behind.check()
    assert worker.state(behind) == "RUNNING"
    worker.wait_text("is closed again, after")
    assert "trace" not in worker.get(f"/connectors/{behind.name}/status")["connector"]


def _held(worker: WorkerProcess, pipeline: Pipeline) -> dict[str, Any] | None:
    status = worker.get(f"/connectors/{pipeline.name}/status")
    return status if "Circuit breaker" in status["connector"].get("trace", "") else None
