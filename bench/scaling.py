"""How a cluster of 1,000 connectors grows and shrinks, as the operator decides: `make bench-scaling`.

Nothing is measured and nothing is random: the same code gives the same numbers on every machine. A day is
decided on every 30 seconds, by `icestream.operator.scaling`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from icestream.operator.scaling import ScaleState, ScalingSpec, workers_wanted

RESULTS: Final = Path(__file__).parent / "results" / "scaling.json"
TURN: Final = 30.0
DAY: Final = 86_400.0
SPEC: Final = ScalingSpec(min_workers=2, max_workers=60, connectors_per_worker=20)
_DECIDES: Final = ("min_workers", "max_workers", "connectors_per_worker", "cool_down_seconds", "step")


@dataclass(frozen=True)
class WorkersOfADay:
    name: str
    most_workers: int
    last_workers: int
    changes: int
    turnarounds: int
    """How often a change was the opposite of the one before."""
    minutes_short: float
    """For how long there were fewer workers than the connectors asked for."""


def ramp(second: float) -> int:
    """All come within an hour, and stay."""
    return min(1000, int(1000 * second / 3600))


def burst(second: float) -> int:
    """A hundred, and a thousand for ten minutes at noon."""
    return 1000 if DAY / 2 <= second < DAY / 2 + 600 else 100


def waves(second: float) -> int:
    """Some that come and go every four minutes."""
    return 500 + round(100 * math.sin(second / 240 * 2 * math.pi))


def edge(second: float) -> int:
    """One more and one less than fits, in turn."""
    return 1000 + int(second // TURN) % 2


def emptied(second: float) -> int:
    """A thousand until noon, none from then on."""
    return 1000 if second < DAY / 2 else 0


CONNECTORS: Final = (ramp, burst, waves, edge, emptied)


def workers_of_a_day(connectors: Callable[[float], int], spec: ScalingSpec = SPEC) -> WorkersOfADay:
    number, state = spec.min_workers, ScaleState()
    numbers, short = [number], 0
    for turn in range(int(DAY / TURN)):
        now = turn * TURN
        count = connectors(now)
        decided = workers_wanted(spec, number, count, state, now)
        number, state = decided.number, decided.state
        numbers.append(number)
        short += number < min(spec.max_workers, math.ceil(count / spec.connectors_per_worker))
    return WorkersOfADay(
        connectors.__name__, max(numbers), number, *_changes(numbers), minutes_short=short * TURN / 60
    )


def _changes(numbers: Sequence[int]) -> tuple[int, int]:
    """How many, and how many against the one before."""
    steps = [later - sooner for sooner, later in pairwise(numbers) if later != sooner]
    return len(steps), sum(one * other < 0 for one, other in pairwise(steps))


def results() -> dict[str, object]:
    return {
        "spec": {name: value for name, value in asdict(SPEC).items() if name in _DECIDES},
        "workers": [asdict(workers_of_a_day(one)) for one in CONNECTORS],
    }


def main() -> None:
    RESULTS.write_text(json.dumps(results(), indent=2) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
