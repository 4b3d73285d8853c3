"""The examples of `k8s/examples`, and exactly what is made of them: golden files.

A change that is meant: `python -m tests.unit.operator.golden` writes them anew; read the difference.
"""

from __future__ import annotations

import pytest

from tests.unit.operator.golden import CLUSTERS, GOLDEN, objects_of, rendered


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_objects_of_an_example_are_those_of_the_golden_file(name: str) -> None:
    assert rendered(name) == (GOLDEN / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_secret_is_made(name: str) -> None:
    assert "Secret" not in [one["kind"] for one in objects_of(name)]
