"""The real Kafka Connect 4.3.1 and ours get the same requests; answers differ only as agreed."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def met(tally: Tally) -> Iterator[list[Outcome]]:
    """All outcomes of the run."""
    outcomes: list[Outcome] = []
    yield outcomes
    for outcome in outcomes:
        tally.add(REST, agreed=outcome.agrees, allowed=bool(outcome.allowed))


@pytest.mark.parametrize("part", TABLE)
def test_both_answer_alike(part: str, sides: Sides, met: list[Outcome]) -> None:
    surprises = [
        f"[{scenario.name}] {surprise}"
        for scenario in TABLE[part].SCENARIOS
        for surprise in _surprises(scenario, sides, met)
    ]
    assert not surprises, "\n".join(surprises)


def test_every_agreed_difference_is_met(met: list[Outcome]) -> None:
    """One that is not met any more must go, from here and from docs/compatibility.md."""
    requests = sum(len(scenario.requests) for module in TABLE.values() for scenario in module.SCENARIOS)
    if len(met) < requests:
        pytest.skip("only a part of the table was run")
    found = {outcome.allowed for outcome in met if outcome.allowed}
    assert found <= set(ALLOWED)
    assert {name for name, one in ALLOWED.items() if not one.is_rare} <= found


def _surprises(scenario: Scenario, sides: Sides, met: list[Outcome]) -> list[str]:
    outcomes = [compare(request, sides.theirs, sides.ours) for request in scenario.requests]
    met += outcomes
    if any(outcome.has_created for outcome in outcomes):
        clear(sides.theirs)
        clear(sides.ours)
    return [str(outcome) for outcome in outcomes if not outcome.is_good]
