"""A job of FileStreamSource or FileStreamSink in a process of its own, which ends itself at a chosen point.

Started by `test_file_jobs.py`. It says `# drained` whenever it finds nothing to do.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from icestream import logs
from icestream.connectors.file.line_file import LineFile
from icestream.jobs.build_file_sink import file_sink_manager
from icestream.jobs.build_sources import source_manager
from icestream.kafka.bulk_producer import BulkProducer, Outgoing
from tests.crashes.faults import Fault, Faults, say


def spoil(faults: Faults) -> None:
    """More points: records sent but not their offset, half of a batch in the file."""
    send, write = BulkProducer.send, LineFile._write

    def spoiled_send(self: BulkProducer, outgoing: Outgoing) -> None:
        send(self, outgoing)
        self.flush(10)
        faults.reached("records sent")

    def spoiled_write(self: LineFile, text: bytes) -> None:
        write(self, text[: len(text) // 2])
        os.fsync(self._file)
        faults.reached("half written")
        write(self, text[len(text) // 2 :])

    vars_of: Any = BulkProducer
    vars_of.send = spoiled_send
    vars_of = LineFile
    vars_of._write = spoiled_write


def main(spec: dict[str, Any]) -> None:
    logs.configure("INFO")
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    spoil(faults)
    make: Any = source_manager if spec["is_source"] else file_sink_manager
    manager = make(spec["name"], spec["config"], spec["worker"], faults.reached)
    while True:
        pause = manager.tick()
        if pause:
            say("drained")
            time.sleep(pause)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
