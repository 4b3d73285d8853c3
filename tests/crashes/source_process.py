"""The manager of a source connector in a process of its own, which ends itself at a chosen point.

Started by `SourceProcess` of `test_sources.py`. It says `# drained` whenever it finds nothing to do.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from icestream import logs
from icestream.jobs.sources.manager import source_manager
from icestream.jobs.sources.writers import TransactionalWriter
from icestream.kafka.bulk_producer import OutgoingColumns
from tests.crashes.faults import Fault, Faults, say
from tests.source_examples import source_plugin


def spoil(faults: Faults) -> None:
    """One more point: records are with Kafka, their offsets are not."""
    send = TransactionalWriter.send

    def spoiled_send(self: TransactionalWriter, outgoing: OutgoingColumns) -> None:
        send(self, outgoing)
        self._producer.flush(10)
        faults.reached("records sent")

    vars_of: Any = TransactionalWriter
    vars_of.send = spoiled_send


def main(spec: dict[str, Any]) -> None:
    logs.configure("INFO")
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    spoil(faults)
    plugin = source_plugin(spec["config"]["connector.class"])
    manager = source_manager(spec["name"], plugin, spec["config"], spec["worker"], faults.reached)
    while True:
        pause = manager.tick()
        if pause:
            say("drained")
            time.sleep(pause)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
