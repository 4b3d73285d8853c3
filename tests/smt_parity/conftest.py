"""One JVM with the real classes for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.smt_parity.harness import Parity
from tests.smt_parity.java_side import running_java
from tests.tally import Tally


@pytest.fixture(scope="session")
def parity(tally: Tally) -> Iterator[Parity]:
    with running_java() as java:
        yield Parity(java, tally)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/smt_parity/"):
            item.add_marker(pytest.mark.network)
            item.add_marker(pytest.mark.slow)
