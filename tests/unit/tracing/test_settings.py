"""When traces are wanted, and where they go."""

from __future__ import annotations

import pytest

from icestream.api.errors import PreconditionError
from icestream.tracing import ENDPOINT, TRACES, Wanted, open_tracer, wanted_traces

BOTH = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("worker", "environ", "wanted"),
    [
        ({}, {}, None),
        ({ENDPOINT: "http://c:4318"}, {}, Wanted("http://c:4318/v1/traces", True)),
        ({ENDPOINT: "https://c/otlp/v1/traces"}, {}, Wanted("https://c/otlp/v1/traces", True)),
        ({ENDPOINT: "http://c:4318"}, {BOTH: "http://d:4318"}, Wanted("http://c:4318/v1/traces", True)),
        ({ENDPOINT: "http://c:4318"}, {"OTEL_SDK_DISABLED": "true"}, None),
        ({}, {BOTH: "http://d:4318/"}, Wanted("http://d:4318/v1/traces", False)),
        ({}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/x"}, Wanted("http://d/x", False)),
        ({}, {BOTH: "http://d:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({}, {BOTH: "http://d:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None),
        ({}, {BOTH: "d:4317"}, None),
    ],
)
def test_traces_are_off_unless_somebody_asks(
    worker: dict[str, str], environ: dict[str, str], wanted: Wanted | None
) -> None:
    assert wanted_traces(worker, environ) == wanted


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("collector:4318", "is not http://host:port"),
        ("ftp://collector", "is not http://host:port"),
        ("http://", "is not http://host:port"),
        ("http://c:99999999", "is not http://host:port"),
        ("http://me:hush@c:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, said: str) -> None:
    (problem,) = TRACES.problems({ENDPOINT: address})
    assert said in problem.message


def test_without_the_extra_one_sentence_names_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(PreconditionError) as raised:
        open_tracer(Wanted("http://c:4318/v1/traces", True), "w")
    assert str(raised.value) == (
        "'icestream.traces.endpoint=http://c:4318/v1/traces' needs OpenTelemetry, which is not installed; "
        "install it with: pip install 'icestream[traces]'"
    )
    # A variable may be meant for others: the worker starts.
    assert open_tracer(Wanted("http://c:4318/v1/traces", False), "w") is None
    assert "icestream[traces]" in caplog.text
