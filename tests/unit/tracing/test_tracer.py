"""Traces as a collector gets them: OTLP over HTTP, read from its protobuf."""

from __future__ import annotations

import io
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extra: pip install 'icestream[traces]'")

from icestream.logs import configure
from icestream.tracing import BatchTracer
from tests.otlp_collector import Collector, attributes, running_collector
from tests.unit.tracing.test_spans import RECORD


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as found:
        yield found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}.items():
        monkeypatch.setenv(name, value)


def eventually(holds: Any) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_batch_is_one_trace_with_a_span_for_each_stage(collector: Collector) -> None:
    batch = uuid.uuid4()
    tracer = BatchTracer(collector.address, "10.0.0.7:8083")
    tracer.batch("orders", replace(RECORD, id=str(batch), outcome=type(RECORD.outcome).UNDER_WAY))
    tracer.batch("orders", replace(RECORD, id=str(batch)))
    tracer.close()
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    spans = {span.name: span for span in collector.spans}
    assert list(spans) == [
        *("batch", "plan", "queue", "read", "convert", "transform", "stage"),
        *("commit", "commit to a target", "publish"),
    ]
    assert {span.trace_id for span in spans.values()} == {batch.bytes}
    root = spans["batch"]
    assert root.parent_span_id == b""
    parents = {name: span.parent_span_id for name, span in spans.items() if name != "batch"}
    assert parents.pop("commit to a target") == spans["commit"].span_id
    assert set(parents.values()) == {root.span_id}
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (1_000_000_000, 11_000_000_000)
    said = attributes(root)
    assert (said["icestream.connector"], said["icestream.records.written"]) == ("orders", 90)
    resource = collector.resource()
    assert (resource["service.name"], resource["service.instance.id"]) == ("icestream", "10.0.0.7:8083")


def test_opentelemetrys_own_variables_have_the_rest(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "lake")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    tracer = BatchTracer(collector.address, "w")
    tracer.batch("orders", RECORD)
    tracer.close()
    assert collector.resource()["service.name"] == "lake"
    assert collector.resource()["deployment.environment"] == "test"

    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    collector.requests.clear()
    tracer = BatchTracer(collector.address, "w")
    tracer.batch("orders", RECORD)
    tracer.close()
    assert collector.requests == []


def lines_of_tracing() -> Callable[[], list[str]]:
    """What the log says, line by line, from now on: of this thread and of OpenTelemetry's, whoever the logger
    is. Other threads of the process, such as those that another test has left, may log meanwhile."""
    stream, own = io.StringIO(), threading.get_ident()
    configure("INFO", stream)
    (handler,) = logging.getLogger().handlers
    handler.addFilter(lambda it: it.thread == own or str(it.threadName).startswith("OtelBatchSpan"))
    return lambda: stream.getvalue().splitlines()


def test_a_collector_that_is_away_harms_nothing_and_is_told_of_once(collector: Collector) -> None:
    lines = lines_of_tracing()
    elsewhere = threading.Thread(target=logging.getLogger("icestream.elsewhere").info, args=["done"])
    elsewhere.start()
    elsewhere.join()

    def told() -> list[str]:
        return [line.partition(" icestream.tracing.tracer ")[2].partition(" http")[0] for line in lines()]

    collector.status = 400
    tracer = BatchTracer(collector.address, "w")
    for _ in range(5_000):
        tracer.batch("orders", RECORD)
    away = ["traces of batches go to", "traces cannot be sent to"]
    eventually(lambda: told() == away)
    for _ in range(3):
        before = collector.refused
        tracer.batch("orders", RECORD)
        eventually(lambda before=before: collector.refused > before)
    assert told() == away, lines()
    collector.status = 200

    def sent() -> bool:
        tracer.batch("orders", RECORD)
        return bool(collector.requests)

    eventually(sent)
    eventually(lambda: told() == [*away, "traces are sent to"])
    tracer.close()


def test_a_worker_ends_without_its_collector() -> None:
    tracer = BatchTracer("http://127.0.0.1:9/v1/traces", "w")
    tracer.batch("orders", RECORD)
    tracer.close()
    tracer.batch("orders", RECORD)
