"""Sends each batch that has ended to a collector. An observer that the worker composes
(`cli/worker_process.py`).

OpenTelemetry's processor has a thread and a bounded queue: a collector that is away costs traces and nothing
else, and is told of once.
"""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icestream import __version__
from icestream.api.errors import PreconditionError
from icestream.api.history import BatchRecord, Event
from icestream.deadlines import Overdue, within
from icestream.logs import masked_value
from icestream.tracing.settings import ENDPOINT, Wanted
from icestream.tracing.spans import Span, batch_span, trace_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanContext

_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS: Final = 3.0
_MOST_SPANS: Final = 10_000
_SERVICE: Final = "icestream"


def open_tracer(wanted: Wanted, worker: str) -> BatchTracer | None:
    """None if a variable asks for traces that cannot be; if the config does, PreconditionError."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        sentence = (
            f"'{ENDPOINT}={wanted.address}' needs OpenTelemetry, which is not installed; "
            "install it with: pip install 'icestream[traces]'"
        )
        if wanted.is_set:
            raise PreconditionError(sentence) from None
        _LOG.warning(
            "no traces of batches: %s", sentence.replace(f"{ENDPOINT}=", "OTEL_EXPORTER_OTLP_ENDPOINT=")
        )
        return None
    return BatchTracer(wanted.address, worker)


class BatchTracer:
    """Told of batches by any thread; `close` sends what is left, if the collector answers."""

    def __init__(
        self, address: str, worker: str, draw_id: Callable[[], int] = lambda: random.getrandbits(64)
    ) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._words = _LastWords()
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last, and win.
        own = {"service.name": _SERVICE, "service.version": __version__, "service.instance.id": worker}
        self._resource = Resource(own).merge(_of_environment())
        # For the sampler that OTEL_TRACES_SAMPLER names.
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        self._scope = InstrumentationScope(_SERVICE, __version__)
        self._draw_id = draw_id
        exporter = _told_once(OTLPSpanExporter(endpoint=address), masked_value(address), self._words)
        self._processor = BatchSpanProcessor(exporter, max_queue_size=_MOST_SPANS)
        _LOG.info("traces of batches go to %s", masked_value(address))

    def batch(self, connector: str, record: BatchRecord) -> None:
        if record.is_over:
            self._send(batch_span(connector, record), trace_id(record.id))

    def event(self, connector: str, event: Event) -> None:
        """Events are no part of a batch."""

    def forget(self, connector: str) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        try:
            within(_CLOSE_SECONDS, self._processor.shutdown, "the collector of traces")
            self._words.close()
        except Overdue:
            _LOG.info("the last traces were not sent")

    def _send(self, span: Span, trace: int) -> None:
        from opentelemetry.sdk.trace.sampling import Decision

        if self._sampler.should_sample(None, trace, span.name).decision is Decision.RECORD_AND_SAMPLE:
            for one in self._readable(span, trace, None):
                self._processor.on_end(one)

    def _readable(self, span: Span, trace: int, parent: SpanContext | None) -> list[ReadableSpan]:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

        context = SpanContext(trace, self._draw_id() or 1, is_remote=False, trace_flags=TraceFlags(1))
        status = Status(StatusCode.ERROR, span.error) if span.error is not None else Status(StatusCode.OK)
        made = ReadableSpan(
            span.name,
            context,
            parent,
            self._resource,
            dict(span.attributes),
            status=status,
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )
        below = (self._readable(child, trace, context) for child in span.children)
        return [made, *itertools.chain.from_iterable(below)]


def _of_environment() -> Any:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    # Without a name of its own: the default of OpenTelemetry would hide ours.
    found = OTELResourceDetector().detect().attributes
    return Resource(dict(found))


class _LastWords(logging.Handler):
    """Keeps what OpenTelemetry's exporter said last. It says so at every attempt; we say it once."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._own = logging.getLogger("opentelemetry")
        self._own.addHandler(self)
        self._own.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()

    def close(self) -> None:
        self._own.removeHandler(self)
        self._own.propagate = True
        super().close()


def _told_once(exporter: SpanExporter, address: str, words: _LastWords) -> SpanExporter:
    """The exporter; its first failure, and its first success after that, are lines of the log."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class ToldOnce(SpanExporter):
        is_away = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = exporter.export(spans)
            failed = result is not SpanExportResult.SUCCESS
            if failed and not self.is_away:
                _LOG.warning(
                    "traces cannot be sent to %s and are lost until it answers; batches go on (%s)",
                    address,
                    words.text,
                )
            elif self.is_away and not failed:
                _LOG.info("traces are sent to %s again", address)
            self.is_away = failed
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return exporter.force_flush(timeout_millis)

    return ToldOnce()
