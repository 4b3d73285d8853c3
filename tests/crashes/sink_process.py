"""The job of any sink in a process of its own, without Spark, which kills itself at a chosen point.

Started by `test_sinks.py` with a JSON file: name, config, worker, faults. Says `# drained` whenever it finds
nothing to do.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icestream import logs
from icestream.connectors.file.journal import Append, Journal
from icestream.connectors.file.sink import LineFile
from icestream.connectors.jdbc.sink.table import JdbcTable
from icestream.connectors.s3 import target
from icestream.connectors.s3.commits.ledger import Entry
from icestream.connectors.s3.commits.staged import StagedObject
from icestream.connectors.s3.stores.store import ObjectStore
from icestream.connectors.s3.target import S3Target
from icestream.jobs.sinks.build import sink_manager
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from tests.crashes.faults import Fault, Faults, say
from tests.crashes.manager_process import spoil_transactions


def spoil_files(faults: Faults) -> None:
    """Points inside an append to a file: it is journaled, half of it is there, all of it is."""
    write, begin = LineFile._write, Journal.begin

    def spoiled_begin(self: Journal, append: Append) -> None:
        begin(self, append)
        faults.reached("journaled")

    def spoiled_write(self: LineFile, file: int, text: bytes) -> None:
        write(self, file, text[: len(text) // 2])
        os.fsync(file)
        faults.reached("half written")
        write(self, file, text[len(text) // 2 :])
        faults.reached("written")

    spoiled: Any = LineFile
    spoiled._write = spoiled_write
    spoiled = Journal
    spoiled.begin = spoiled_begin


def spoil_ledgers(faults: Faults) -> None:
    """Points inside a commit to objects: its entry is there, half of them are visible, all of them are."""
    publish, complete = S3Target._publish, target.complete_all

    def spoiled_publish(self: S3Target, entry: Entry) -> None:
        faults.reached("entered")
        publish(self, entry)

    def spoiled_complete(store: ObjectStore, objects: Sequence[StagedObject]) -> list[StagedObject]:
        half = len(objects) // 2
        lost = complete(store, objects[:half])
        faults.reached("half published")
        lost += complete(store, objects[half:])
        faults.reached("completed")
        return lost

    spoiled: Any = S3Target
    spoiled._publish = spoiled_publish
    spoiled = target
    spoiled.complete_all = spoiled_complete


def spoil_databases(faults: Faults) -> None:
    """Points inside a transaction: it has begun, all is said but its end, it has ended."""
    merged, end = JdbcTable._merged, JdbcTable._end

    def spoiled_merged(self: JdbcTable, connection: Any, commit: Any) -> Any:
        faults.reached("merging")
        refused = merged(self, connection, commit)
        faults.reached("merged")
        return refused

    def spoiled_end(self: JdbcTable, connection: Any) -> None:
        end(self, connection)
        faults.reached("ended")

    spoiled: Any = JdbcTable
    spoiled._merged, spoiled._end = spoiled_merged, spoiled_end


def spoil_delta(faults: Faults) -> None:
    """Points inside a commit to a Delta table: its columns are added, it is sent, it has landed, and its log
    is about to get a checkpoint."""
    from icestream.connectors.delta.commits.log_checkpoint import LogCheckpoints
    from icestream.connectors.delta.table import DeltaSinkTable

    table: Any = DeltaSinkTable
    send, grow, checkpoint = table._send, table._grown, LogCheckpoints.after_commit

    def spoiled_send(self: DeltaSinkTable, *arguments: Any, **named: Any) -> None:
        faults.reached("sending")
        send(self, *arguments, **named)
        faults.reached("accepted")

    def spoiled_grow(self: DeltaSinkTable, opened: Any, commit: Any) -> Any:
        grown = grow(self, opened, commit)
        if commit.plan.new_fields:
            faults.reached("grown")
        return grown

    def spoiled_checkpoint(self: LogCheckpoints, name: str, opened: Any) -> None:
        faults.reached("log checkpoint")
        checkpoint(self, name, opened)

    table._send, table._grown = spoiled_send, spoiled_grow
    log: Any = LogCheckpoints
    log.after_commit = spoiled_checkpoint


def main(spec: dict[str, Any]) -> None:
    logs.configure("INFO")
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    spoil_transactions(faults)
    spoil_files(faults)
    if spec["config"]["connector.class"] == "DeltaSinkConnector":
        spoil_delta(faults)
    spoil_ledgers(faults)
    spoil_databases(faults)

    def reached(point: str) -> None:
        # The name of the target is of no interest here.
        faults.reached(point.partition(" ")[0] if point.startswith("committed ") else point)

    config, worker = spec["config"], spec["worker"]
    runner = InWorkerRunner({"bootstrap.servers": worker["bootstrap.servers"]}, RecordSettings.of(config))
    manager = sink_manager(spec["name"], config, worker, runner, reached)
    while True:
        pause = manager.tick()
        if pause and manager.progress.lag == 0:
            say("drained")
        time.sleep(pause)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
