"""What a process of the crash tests does to itself, and when. Light to import: processes start by it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException


@dataclass(frozen=True)
class Fault:
    """What a manager process does to itself. Points: those of the job manager, and

    `sending` and `accepted`: around the catalog's answer; `closing` and `closed`: around the end of the Kafka
    transaction. Actions: kill, stop (SIGSTOP), raise.
    """

    point: str
    action: str
    turn: int = 1
    """Which time the point is reached."""


def say(*words: object) -> None:
    # In one write: lines of the log come from other threads, into the same file.
    os.write(sys.stdout.fileno(), f"# {' '.join(map(str, words))}\n".encode())


class Faults:
    """Acts on the process when a point is reached for the right time."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self._times: Counter[str] = Counter()

    def reached(self, point: str) -> None:
        say(point)
        self._times[point] += 1
        for fault in self._faults:
            if fault.point == point and fault.turn == self._times[point]:
                self._act(fault)

    def _act(self, fault: Fault) -> None:
        if fault.action == "raise":
            if fault.point in ("closing", "closed"):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the answer is lost", retriable=True))
            raise OSError("the answer is lost")
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[fault.action]
        # To this thread: sent to the process, another thread may take it, and this one goes on until then.
        signal.pthread_kill(threading.get_ident(), number)
        say("goes on after", fault.point)
