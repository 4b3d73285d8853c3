"""The real Kafka Connect 4.3.1 and ours get the same requests; answers differ only as agreed."""

from __future__ import annotations

import pytest

from tests.parity.cases import bodies, life, loggers, offsets, paths, plugins, transforms
from tests.parity.comparing import Tally, compare
from tests.parity.conftest import Sides
from tests.parity.differences import ALLOWED
from tests.parity.sides import clear
from tests.parity.table import Scenario

pytestmark = [pytest.mark.slow, pytest.mark.network]

TABLE = {
    module.__name__.rpartition(".")[2]: module
    for module in (bodies, life, loggers, offsets, paths, plugins, transforms)
}


@pytest.mark.parametrize("part", TABLE)
def test_both_answer_alike(part: str, sides: Sides, tally: Tally) -> None:
    surprises = [
        f"[{scenario.name}] {surprise}"
        for scenario in TABLE[part].SCENARIOS
        for surprise in _surprises(scenario, sides, tally)
    ]
    assert not surprises, "\n".join(surprises)


def test_every_agreed_difference_is_met(tally: Tally) -> None:
    """One that is not met any more must go, from here and from docs/compatibility.md."""
    requests = sum(len(scenario.requests) for module in TABLE.values() for scenario in module.SCENARIOS)
    if len(tally.outcomes) < requests:
        pytest.skip("only a part of the table was run")
    assert set(ALLOWED) == {outcome.allowed for outcome in tally.outcomes if outcome.allowed}


def _surprises(scenario: Scenario, sides: Sides, tally: Tally) -> list[str]:
    outcomes = [compare(request, sides.theirs, sides.ours) for request in scenario.requests]
    tally.outcomes += outcomes
    if any(outcome.has_created for outcome in outcomes):
        clear(sides.theirs)
        clear(sides.ours)
    return [str(outcome) for outcome in outcomes if not outcome.is_good]
