"""Changes the offsets of a connector in a process of its own, which kills itself at a chosen point.

Started by `test_moved_offsets.py` with a JSON file: name, config, worker, moves (null: reset), point.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from icestream.api.offsets import Partition
from icestream.jobs.offsets.sink_offsets import sink_offset_store


def main(path: str) -> None:
    spec = json.loads(Path(path).read_text())
    name, config = spec["name"], spec["config"]

    def reached(point: str) -> None:
        if point == spec["point"]:
            os.kill(os.getpid(), signal.SIGKILL)

    store = sink_offset_store(name, config, spec["worker"], reached)
    if spec["moves"] is None:
        store.reset()
    else:
        store.alter({Partition(topic, number): offset for topic, number, offset in spec["moves"]})


if __name__ == "__main__":
    main(sys.argv[1])
