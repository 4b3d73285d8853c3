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
from icestream.jobs.source_manager import source_manager
from icestream.plugins import source_plugin
from tests.crashes.faults import Fault, Faults, say


def spoil(faults: Faults) -> None:
    """One more point: half of a batch is in the file."""
    write = LineFile._write

    def spoiled_write(self: LineFile, text: bytes) -> None:
        write(self, text[: len(text) // 2])
        os.fsync(self._file)
        faults.reached("half written")
        write(self, text[len(text) // 2 :])

    vars_of: Any = LineFile
    vars_of._write = spoiled_write


def main(spec: dict[str, Any]) -> None:
    logs.configure("INFO")
    faults = Faults([Fault(*fault) for fault in spec["faults"]])
    spoil(faults)
    name, config, worker = spec["name"], spec["config"], spec["worker"]
    manager: Any
    if spec["is_source"]:
        manager = source_manager(name, source_plugin(config["connector.class"]), config, worker)
    else:
        manager = file_sink_manager(name, config, worker, faults.reached)
    while True:
        pause = manager.tick()
        if pause:
            say("drained")
            time.sleep(pause)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
