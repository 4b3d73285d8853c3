"""What the class of a connector decides: which manager it has, and who reads and moves its offsets. Set up by
the command of the worker; asked whenever a connector starts, and when somebody asks for offsets.

What only some connectors need is imported when the first of them starts: a worker without Spark jobs is ready
at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from icestream.api.config import Config
from icestream.api.engine import EngineNumbers
from icestream.api.history import NobodyLooks, Observer
from icestream.api.manager import MakeManager, Manager
from icestream.api.offset_admin import OffsetAdmin, OffsetEntry, PartitionPosition
from icestream.api.sink import SinkPlugin
from icestream.api.source import SourcePlugin
from icestream.api.status import Outage
from icestream.jobs.processes.child_process import ChildOptions
from icestream.jobs.processes.job_place import job_place, processes_allowed
from icestream.jobs.processes.process_manager import COMMAND, Places, ProcessManager, job_order
from icestream.jobs.worker_resources import WorkerResources
from icestream.plugins import find_connector
from icestream.waits import waiting_for

if TYPE_CHECKING:
    from icestream.pipeline.spark_runner import SparkPlane


def manager_maker(
    worker: Mapping[str, str], late: LateSpark | None = None, observer: Observer | None = None
) -> MakeManager:
    """Spark starts with the first connector that needs it, or now if the config names it.

    Whoever sets it up has such connectors, and the first of them should not wait. `observer` is told of every
    batch of all managers.
    """
    told = observer or NobodyLooks()
    spark = late or LateSpark(worker)
    shared = WorkerResources()
    places = Places(processes_allowed(worker))
    has_processes = worker.get("icestream.job.manager", "").strip() == "process"
    if any(key.startswith("spark.") for key in worker) and not has_processes:
        spark.plane()

    def make(name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
        plugin = find_connector(config["connector.class"]).plugin
        place = job_place(plugin, config, worker)
        if place.has_process:
            order = job_order(name, plugin, config, worker, place)
            options = ChildOptions(COMMAND, place.heartbeat_seconds)
            return ProcessManager(order, options, wake, places, observer=told)
        if isinstance(plugin, SinkPlugin):
            from icestream.jobs.sinks.build import batch_runner, sink_manager

            runner = batch_runner(name, config, worker, spark.plane)
            return sink_manager(name, config, worker, runner, shared=shared, wake=wake, observer=told)
        from icestream.jobs.sources.manager import source_manager

        assert isinstance(plugin, SourcePlugin)
        return source_manager(name, plugin, config, worker, observer=told)

    return make


class LateSpark:
    """The worker's Spark session, opened and warmed when it is first asked for."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._plane: SparkPlane | None = None

    def outage(self) -> Outage | None:
        """Whether Spark was here and is away. Never blocks."""
        plane = self._plane
        return plane.outage if plane else None

    def numbers(self) -> EngineNumbers | None:
        """What Spark tells of itself; None before it is there, or while it does not answer."""
        plane = self._plane
        return plane.numbers() if plane else None

    def plane(self) -> SparkPlane:
        from icestream.kafka.clients import client_settings
        from icestream.pipeline.spark_runner import SparkPlane

        with waiting_for("Spark to start"), self._lock:
            if self._plane is None:
                plane = SparkPlane(self._worker)
                plane.warm_up(client_settings(self._worker, "consumer"))
                self._plane = plane
            return self._plane


def offset_admin(worker: Mapping[str, str]) -> OffsetAdmin:
    """Reads and moves the offsets of any connector. Used by the service."""
    return _OffsetAdminByClass(worker)


class _OffsetAdminByClass:
    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        return self._admin_of(config).read(name, config)

    def positions(
        self, name: str, config: Config, entries: Sequence[OffsetEntry] = ()
    ) -> list[PartitionPosition] | None:
        return self._admin_of(config).positions(name, config, entries)

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        return self._admin_of(config).alter(name, config, entries)

    def reset(self, name: str, config: Config) -> str:
        return self._admin_of(config).reset(name, config)

    def _admin_of(self, config: Config) -> OffsetAdmin:
        # Late, because what opens tables is slow to import, and few workers are ever asked for offsets.
        plugin = find_connector(config["connector.class"]).plugin
        if isinstance(plugin, SourcePlugin):
            from icestream.jobs.offsets.source_offsets import SourceConnectorOffsets

            return SourceConnectorOffsets(self._worker, plugin)
        from icestream.jobs.offsets.sink_offsets import SinkOffsets

        return SinkOffsets(self._worker)
