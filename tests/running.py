"""Connectors that run in the process of the tests: a reconciler around a real manager, nothing above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from icestream.api.history import Observer
from icestream.api.manager import MakeManager
from icestream.api.status import JobStatus
from icestream.cluster.desired_state import DesiredState
from icestream.cluster.reconciler import Reconciler
from icestream.cluster.stores.connector_store import TargetState

if TYPE_CHECKING:
    from icestream.pipeline.spark_runner import SparkPlane

_PATIENCE = 60.0


class RunningConnector:
    def __init__(
        self,
        make: MakeManager,
        name: str,
        config: Mapping[str, str],
        *,
        paused: bool,
        observer: Observer | None = None,
    ) -> None:
        target = TargetState.PAUSED if paused else TargetState.STARTED
        self._desired = DesiredState(1, config, target)
        self._reconciler = Reconciler(name, lambda: make, observer=observer)
        self._reconciler.set_desired(self._desired)

    def pause(self) -> None:
        self._set_target(TargetState.PAUSED)

    def resume(self) -> None:
        self._set_target(TargetState.STARTED)

    def stop(self) -> None:
        """Returns when the job has ended: no batch of it commits anything after this."""
        self._set_target(TargetState.STOPPED)
        assert self._reconciler.wait(_PATIENCE)

    def status(self) -> JobStatus:
        return self._reconciler.status()

    def _set_target(self, target: TargetState) -> None:
        self._desired = replace(self._desired, target=target)
        self._reconciler.set_desired(self._desired)


class StartConnector(Protocol):
    def __call__(self, name: str, config: Mapping[str, str], *, paused: bool) -> RunningConnector: ...


def connector_starter(
    worker: Mapping[str, str], spark: SparkPlane | None = None, observer: Observer | None = None
) -> StartConnector:
    """Starts connectors as a worker with this config does, on this Spark session."""
    from icestream.jobs.build import LateSpark, manager_maker

    late = LateSpark(worker)
    late._plane = spark
    make = manager_maker(worker, late, observer)

    def start(name: str, config: Mapping[str, str], *, paused: bool) -> RunningConnector:
        return RunningConnector(make, name, config, paused=paused, observer=observer)

    return start
