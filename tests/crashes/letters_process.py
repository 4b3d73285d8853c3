"""A job without Spark in a process of its own, whose dead letters go in many small transactions, and which
kills itself at a chosen point.

Started by `test_many_letters.py` with a JSON file: name, config, worker, faults.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from icestream.jobs.sinks.build import sink_manager
from icestream.kafka import transactions
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from tests.crashes.faults import Fault, Faults
from tests.crashes.manager_process import spoil_transactions
from tests.crashes.pipeline import drain


def main(spec: dict[str, Any]) -> None:
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    # A transaction takes letters for two milliseconds.
    vars(transactions)["_SHARE"] = 30_000
    spoil_transactions(faults)
    name, config, worker = spec["name"], spec["config"], spec["worker"]
    kafka = {"bootstrap.servers": worker["bootstrap.servers"]}
    runner: Any = InWorkerRunner(kafka, RecordSettings.of(config))
    drain(sink_manager(name, config, worker, runner, faults.reached))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
