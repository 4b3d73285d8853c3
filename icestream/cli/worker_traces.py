"""The traces of a worker of either mode: each batch of its jobs goes to a collector, if the config or
OpenTelemetry's variables name one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from icestream.cli.worker_process import DataPlane
    from icestream.cluster.settings.worker_config import WorkerConfig

_SETTLE_SECONDS: Final = 1.0


class WorkerTraces:
    """Told of batches once this exists; PreconditionError if the config asks for what is not installed."""

    def __init__(self, config: WorkerConfig, plane: DataPlane, worker: str) -> None:
        from icestream.tracing import open_tracer, wanted_traces

        wanted = wanted_traces(config.raw, os.environ)
        self._tracer = open_tracer(wanted, worker) if wanted is not None else None
        self._observers = plane.observers
        if self._tracer is not None:
            plane.observers.add(self._tracer)

    def stop(self) -> None:
        """When the jobs have ended: their last batches are sent, if the collector answers."""
        if self._tracer is not None:
            self._observers.settle(_SETTLE_SECONDS)
            self._tracer.close()
