"""OpenTelemetry traces of batches, by OTLP; off unless configured (the extra `traces`)."""

from icestream.tracing.settings import ENDPOINT, TRACES, Wanted, wanted_traces
from icestream.tracing.tracer import BatchTracer, open_tracer

__all__ = ["ENDPOINT", "TRACES", "BatchTracer", "Wanted", "open_tracer", "wanted_traces"]
