"""A process of a job for the tests of its worker's side: the real channel, and a manager that does as the
config says. Started with the number of its socket as the last argument."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping

from icestream.api import errors
from icestream.api.errors import Cancelled, ConfigError, Problem
from icestream.api.history import (
    BatchRecord,
    Event,
    Observer,
    Outcome,
    PartitionLag,
    TargetCommit,
    TopicCounts,
)
from icestream.api.status import Progress
from icestream.jobs.processes.job_process import serve_worker
from icestream.waits import waiting_for

FULL = BatchRecord(
    "b1",
    7,
    Outcome.COMMITTED,
    1.5,
    9,
    9,
    6,
    {"VALUE_CONVERTER": 1},
    {"old": 2},
    100,
    3,
    {"t": 11},
    12,
    2,
    0.75,
    {"read": 0.5, "commit": 0.25},
    (TargetCommit("ns.t", "17", 6, 0.25, (10, 20), Outcome.COMMITTED),),
    {"t": TopicCounts(6, 1, 1)},
    1,
    "a note",
)
"""A fact for every field."""


class Toy:
    def __init__(self, config: Mapping[str, str], wake: Callable[[], None], observer: Observer) -> None:
        self.config, self.wake = config, wake
        self.observer = observer
        number = int(config.get("partitions", "0"))
        self.partitions = tuple(PartitionLag("t", one, 0, one) for one in range(number))
        self.progress = Progress()
        self.cancelled = threading.Event()

    def tick(self) -> float:
        self.progress = Progress(
            lag=3, batches=self.progress.batches + 1, topics=("a", "b"), partitions=self.partitions
        )
        turn = self.config["turn"]
        if "tells" in self.config:
            self.tell(self.progress.batches)
        if turn == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif turn == "exit":
            os._exit(7)
        elif turn == "stop":
            # To this thread: another one might take it, and this one would go on until then.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        elif turn == "hang":
            with waiting_for("the catalog"):
                time.sleep(600)
        elif turn == "long":
            self.cancelled.wait(600)
            raise Cancelled("given up")
        elif turn == "wake":
            threading.Timer(0.1, self.wake).start()
            return 600.0
        elif turn == "config":
            raise ConfigError([Problem("topics", "which?")])
        elif turn == "bug":
            raise ZeroDivisionError("no number")
        elif turn.startswith("raise "):
            raise getattr(errors, turn.split()[1])("as it was told")
        if "level" in self.config:
            import logging

            self.progress = Progress(rows=logging.getLogger(self.config["level"]).getEffectiveLevel())
        return 0.5

    def tell(self, number: int) -> None:
        """Of a batch, which is over at the next turn."""
        event = Event(5, "retry", "again", about="kafka", numbers={"seconds": 2.0})
        self.observer.event("toy", event)
        self.observer.batch("toy", BatchRecord(f"b{number}", 7, Outcome.UNDER_WAY, planned=9))
        if self.config["tells"] == "end":
            self.observer.batch("toy", FULL)

    def cancel(self) -> None:
        self.cancelled.set()

    def allow(self) -> None:
        self.cancelled.clear()

    def close(self) -> None:
        if "closed" in self.config:
            with open(self.config["closed"], "w") as note:
                note.write("closed")


if __name__ == "__main__":
    serve_worker(int(sys.argv[-1]), lambda worker, told: lambda name, config, wake: Toy(config, wake, told))
