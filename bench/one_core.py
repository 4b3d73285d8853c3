"""How many records a second one core takes through converters, transforms and validation; no Kafka, no Spark.

`make bench-records` runs `python -m bench.records`, which prints what is measured here. Each case is a
function of one chunk; cases of one comparison take turns on the same chunks in one process, so that a busy
machine slows them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

CHUNK_ROWS = 10_000

Case = Callable[[int], None]
"""Does its work for the chunk of this number."""


@dataclass(frozen=True)
class Speed:
    """The best of several rounds, in CPU time: what else the machine does counts least there."""

    microseconds: float

    @property
    def a_second(self) -> float:
        return 1e6 / self.microseconds


def in_turn(cases: Mapping[str, Case], chunks: int, rounds: int) -> dict[str, Speed]:
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        spent = dict.fromkeys(cases, 0.0)
        for chunk in range(chunks):
            for name, case in cases.items():
                began = time.process_time()
                case(chunk)
                spent[name] += time.process_time() - began
        best = {name: min(best[name], spent[name]) for name in cases}
    return {name: Speed(seconds * 1e6 / (chunks * CHUNK_ROWS)) for name, seconds in best.items()}


def chunks_of(records: Sequence[bytes]) -> list[list[bytes]]:
    return [list(records[at : at + CHUNK_ROWS]) for at in range(0, len(records), CHUNK_ROWS)]
