"""Tests run in random order: what runs together (`work_unit`), its files, and the tests of each.

The start of a run names the seed, and so does its end if a test failed; `--order-seed` gives it again. Of two
tests the same one is first whatever else runs, so a few of them can be run in the order of a whole run.
"""

from __future__ import annotations

import hashlib
import random
from typing import Any, Final

import pytest

from tests.work_units import work_unit

_AS_COLLECTED: Final = "none"
_SEED: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--order-seed",
        metavar="SEED",
        help=f"run the tests in the order of this seed; '{_AS_COLLECTED}': in the order of collection",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", {}).get("order_seed") or config.getoption("--order-seed")
    config.stash[_SEED] = given or str(random.SystemRandom().randrange(10**6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["order_seed"] = node.config.stash[_SEED]


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of the tests: --order-seed={config.stash[_SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.stats.keys() & {"failed", "error"}:
        terminalreporter.write_line(pytest_report_header(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest puts together the tests that use the same value of a fixture with several."""
    if (seed := config.stash[_SEED]) != _AS_COLLECTED:
        items.sort(key=lambda item: _place(seed, item.nodeid))


def _place(seed: str, nodeid: str) -> tuple[bytes, ...]:
    of = (work_unit(nodeid), nodeid.partition("::")[0], nodeid)
    return tuple(hashlib.sha256(f"{seed} {part}".encode()).digest() for part in of)
