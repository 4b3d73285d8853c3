"""Traces as a collector gets them: OTLP over HTTP, read from its protobuf."""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Iterator
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


def test_a_collector_that_is_away_harms_nothing_and_is_told_of_once(collector: Collector) -> None:
    log = io.StringIO()
    configure("INFO", log)

    def lines(text: str) -> int:
        return sum(text in line for line in log.getvalue().splitlines())

    collector.status = 400
    tracer = BatchTracer(collector.address, "w")
    for _ in range(5_000):
        tracer.batch("orders", RECORD)
    eventually(lambda: lines("traces cannot be sent") == 1)
    for _ in range(3):
        tracer.batch("orders", RECORD)
        time.sleep(0.1)
    assert lines("traces cannot be sent") == 1
    assert lines("") == lines(" icestream.tracing.tracer ") == 2
    collector.status = 200

    def sent() -> bool:
        tracer.batch("orders", RECORD)
        return bool(collector.requests)

    eventually(sent)
    eventually(lambda: lines("are sent to") == 1)
    tracer.close()


def test_a_worker_ends_without_its_collector() -> None:
    tracer = BatchTracer("http://127.0.0.1:9/v1/traces", "w")
    tracer.batch("orders", RECORD)
    tracer.close()
    tracer.batch("orders", RECORD)
