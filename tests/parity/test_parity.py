"""The real Kafka Connect 4.3.1 and ours get the same requests; answers differ only as agreed."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from tests.parity.cases import bodies, life, loggers, offsets, paths, plugins, transforms
from tests.parity.comparing import Outcome, compare
from tests.parity.conftest import Sides
from tests.parity.differences import ALLOWED
from tests.parity.sides import clear
from tests.parity.table import Scenario
from tests.tally import REST, Tally

pytestmark = [pytest.mark.slow, pytest.mark.network]

TABLE = {
    module.__name__.rpartition(".")[2]: module
    for module in (bodies, life, loggers, offsets, paths, plugins, transforms)
}


Compared = Callable[[str], list[tuple[Scenario, Outcome]]]


@pytest.fixture(scope="module")
def compared(sides: Sides, tally: Tally) -> Compared:
    """What came of a part of the table; each part runs once."""

    @functools.cache
    def run(part: str) -> list[tuple[Scenario, Outcome]]:
        found = [
            (scenario, outcome)
            for scenario in TABLE[part].SCENARIOS
            for outcome in _outcomes(scenario, sides)
        ]
        for _, outcome in found:
            tally.add(REST, agreed=outcome.agrees, allowed=bool(outcome.allowed))
        return found

    return run


@pytest.mark.parametrize("part", TABLE)
def test_both_answer_alike(part: str, compared: Compared) -> None:
    surprises = [
        f"[{scenario.name}] {outcome}" for scenario, outcome in compared(part) if not outcome.is_good
    ]
    assert not surprises, "\n".join(surprises)


def test_every_agreed_difference_is_met(compared: Compared) -> None:
    """One that is not met any more must go, from here and from docs/compatibility.md."""
    found = {outcome.allowed for part in TABLE for _, outcome in compared(part) if outcome.allowed}
    assert found <= set(ALLOWED)
    assert {name for name, one in ALLOWED.items() if not one.is_rare} <= found


def _outcomes(scenario: Scenario, sides: Sides) -> list[Outcome]:
    outcomes = [compare(request, sides.theirs, sides.ours) for request in scenario.requests]
    if any(outcome.has_created for outcome in outcomes):
        clear(sides.theirs)
        clear(sides.ours)
    return outcomes
