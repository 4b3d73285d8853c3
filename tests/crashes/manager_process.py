"""A job manager in a process of its own, which ends, stops or confuses itself at chosen points.

Started by `processes.ManagerProcess`. Lines that begin with `# ` tell the test what happens; exit code 3: the
job failed for good.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from icestream import logs
from icestream.api.errors import FatalError, SinkUnavailable
from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
from icestream.jobs.sinks.build import batch_runner, sink_manager
from icestream.kafka import transactions
from icestream.pipeline import spark_runner
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.task import run_tasks
from tests.crashes.faults import Fault, Faults, say
from tests.crashes.pipeline import PATIENCE, drain
from tests.integration.local_job import InThisProcess


def spoil_catalog(catalog: Any, faults: Faults) -> None:
    commit_table = catalog.commit_table

    def commit(*arguments: Any, **named: Any) -> Any:
        faults.reached("sending")
        answer = commit_table(*arguments, **named)
        faults.reached("accepted")
        return answer

    catalog.commit_table = commit


def spoil_transactions(faults: Faults) -> None:
    class SpoiledProducer(Producer):
        def commit_transaction(self, *arguments: Any) -> None:
            faults.reached("closing")
            super().commit_transaction(*arguments)
            faults.reached("closed")

    vars(transactions)["Producer"] = SpoiledProducer


def halting(where: str, folder: str, tasks: Any, plan: Any, batches: Iterator[pa.RecordBatch]) -> Any:
    """Runs in a Python worker of Spark: the real work, with a wait in the middle of the first task."""
    from icestream.kafka.reader import SliceReader
    from icestream.pipeline.task import TaskWork

    def halt() -> None:
        try:
            with (Path(folder) / "halted").open("x") as note:
                note.write(str(os.getpid()))
        except FileExistsError:
            return
        deadline = time.monotonic() + 60
        while not (Path(folder) / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    read, work = SliceReader.read_all, TaskWork.run

    def halting_read(self: Any, *arguments: Any) -> Any:
        for chunk in read(self, *arguments):
            yield chunk
            halt()

    def halting_work(self: Any, slices: Any) -> Any:
        taken = work(self, slices)
        halt()
        return taken

    if not getattr(SliceReader, "halts", False):
        spoiled: Any = SliceReader
        spoiled.halts = True
        if where == "reading":
            spoiled.read_all = halting_read
        else:
            spoiled = TaskWork
            spoiled.run = halting_work
    return tasks(plan, batches)


def opened(config: dict[str, str]) -> Any:
    """The catalog of the job, which may be away this moment; open for as long as this process lives."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return SharedCatalog(config).catalog
        except SinkUnavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def main(spec: dict[str, Any]) -> int:
    faulthandler.enable()
    logs.configure("INFO")
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    name, config, worker = spec["name"], spec["config"], spec["worker"]
    if spec["halt"]:
        where, folder = spec["halt"]
        vars(spark_runner)["run_tasks"] = functools.partial(halting, where, folder, run_tasks)
    spoil_transactions(faults)
    spoil_catalog(opened(config), faults)
    runner: Any = InThisProcess({"bootstrap.servers": worker["bootstrap.servers"]}, RecordSettings.of(config))
    if spec.get("on_spark", True):
        plane = spark_runner.SparkPlane(worker)
        runner = batch_runner(name, config, worker, lambda: plane)
    say("ready")
    if spec["waits"]:
        sys.stdin.readline()
    manager = sink_manager(name, config, worker, runner, faults.reached)
    try:
        while True:
            drain(manager, seconds=600)
            say("drained")
            time.sleep(0.05)
    except FatalError as error:
        say("failed", type(error).__name__, error)
        return 3


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
