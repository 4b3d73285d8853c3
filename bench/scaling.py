"""How a cluster of 1,000 connectors grows and shrinks, as the operator decides: `make bench-scaling`.

Nothing is measured and nothing is random: the same code gives the same numbers on every machine. A day is
decided on every 30 seconds, by `icestream.operator.scaling`; the lag of a busy connector follows from what
comes in and what its executors take.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from icestream.operator.scaling import ScaleState, ScalingSpec, executors_wanted, workers_wanted

RESULTS: Final = Path(__file__).parent / "results" / "scaling.json"
TURN: Final = 30.0
DAY: Final = 86_400.0
SPEC: Final = ScalingSpec(
    min_workers=2, max_workers=60, connectors_per_worker=20, min_executors=1, max_executors=8
)


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


@dataclass(frozen=True)
class ExecutorsOfADay:
    name: str
    most_executors: int
    last_executors: int
    changes: int
    turnarounds: int
    worst_lag_seconds: float
    executor_hours: float
    """Against 24 × 8 = 192 if all were there all day."""


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


def even(second: float) -> float:
    return 0.9


def fivefold(second: float) -> float:
    """Half of what one executor takes, and ten times as much for two hours: five times what it takes."""
    return 5.0 if DAY / 3 <= second < DAY / 3 + 7200 else 0.5


def outage(second: float) -> float:
    """The destination is away for an hour: what came meanwhile is there at once when it is back."""
    return 0.6


LOADS: Final = (even, fivefold, outage)


def executors_of_a_day(load: Callable[[float], float], spec: ScalingSpec = SPEC) -> ExecutorsOfADay:
    """One executor takes one second's worth of records in a second; each further one nine tenths of that."""
    number, state, behind = 1, ScaleState(), 0.0
    numbers, worst, hours = [number], 0.0, 0.0
    for turn in range(int(DAY / TURN)):
        now = turn * TURN
        is_away = load is outage and DAY / 3 <= now < DAY / 3 + 3600
        speed = 0.0 if is_away else max(0.0, 1.0 + 0.9 * (number - 1))
        behind = max(0.0, behind + (load(now) - speed) * TURN)
        lag = behind / load(now)
        decided = executors_wanted(spec, number, lag, spec.max_executors, state, now)
        number, state = decided.number, decided.state
        numbers.append(number)
        worst, hours = max(worst, lag), hours + number * TURN / 3600
    return ExecutorsOfADay(
        load.__name__, max(numbers), number, *_changes(numbers), round(worst), round(hours, 1)
    )


def _changes(numbers: Sequence[int]) -> tuple[int, int]:
    """How many, and how many against the one before."""
    steps = [later - sooner for sooner, later in pairwise(numbers) if later != sooner]
    return len(steps), sum(one * other < 0 for one, other in pairwise(steps))


def results() -> dict[str, object]:
    return {
        "spec": asdict(SPEC),
        "workers": [asdict(workers_of_a_day(one)) for one in CONNECTORS],
        "executors": [asdict(executors_of_a_day(one)) for one in LOADS],
    }


def main() -> None:
    RESULTS.write_text(json.dumps(results(), indent=2) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
