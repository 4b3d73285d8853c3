"""The process of a job that kills itself, its worker, or both, at a chosen point. Started by
`process_worker.py`; batches run in the process itself.

The spec is a list of [who, point]: each process takes the next one, and those after the last do no harm.
Arguments: the path of the spec, and the socket of the worker.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from icestream.api.history import Observer
from icestream.api.manager import MakeManager, Manager
from icestream.jobs.processes.job_process import PrepareMaker, serve_worker
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.worker_resources import WorkerResources
from icestream.pipeline.record_path import RecordSettings
from tests.crashes.faults import Fault, Faults, say
from tests.crashes.manager_process import opened, spoil_catalog, spoil_transactions
from tests.integration.local_job import InThisProcess


class Kill(Faults):
    """`kill` of the worker, too; what the process does while its worker is gone, it does."""

    def __init__(self, who: str, point: str) -> None:
        super().__init__([Fault(point, who)] if point else [])
        self._worker = os.getppid()

    def _act(self, fault: Fault) -> None:
        if fault.action in ("worker", "both"):
            os.kill(self._worker, signal.SIGKILL)
        if fault.action in ("child", "both"):
            signal.pthread_kill(threading.get_ident(), signal.SIGKILL)
        say("goes on after", fault.point)


def next_fault(spec: Path) -> tuple[str, str]:
    faults = json.loads(spec.read_text())
    for number in itertools.count():
        try:
            spec.with_name(f"child-{number}").touch(exist_ok=False)
        except FileExistsError:
            continue
        who, point = faults[number] if number < len(faults) else ("", "")
        return who, point
    raise AssertionError


def prepare(spec: Path) -> PrepareMaker:
    def maker(worker: Mapping[str, str], observer: Observer) -> MakeManager:
        def make(name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager:
            who, point = next_fault(spec)
            say("child", os.getpid(), who, point)
            faults = Kill(who, point)
            spoil_transactions(faults)
            spoil_catalog(opened(dict(config)), faults)
            kafka = {"bootstrap.servers": worker["bootstrap.servers"]}
            runner = InThisProcess(kafka, RecordSettings.of(config))
            shared = WorkerResources()
            return sink_manager(name, config, worker, runner, faults.reached, shared, wake, observer)

        return make

    return maker


if __name__ == "__main__":
    serve_worker(int(sys.argv[2]), prepare(Path(sys.argv[1])))
