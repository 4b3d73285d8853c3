"""Both workers, once for all tests of this folder, and the tally at the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from icestream.embedded.kafka import running_broker
from icestream.embedded.ports import free_port
from tests.parity.comparing import Tally
from tests.parity.sending import Side
from tests.parity.sides import fill, icestream, kafka_connect

Worker = Callable[[str, Path], AbstractContextManager[Side]]
TALLY = pytest.StashKey[Tally]()


@dataclass(frozen=True)
class Sides:
    theirs: Side
    ours: Side


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What both sides read from and write to."""
    made = tmp_path_factory.mktemp("files")
    (made / "in.txt").write_text("one\ntwo\nthree\n")
    return made


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Side]:
    """The real one; it may still be starting."""
    with on_own_broker(kafka_connect, tmp_path_factory.mktemp("kafka"), folder) as side:
        yield side


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Side]:
    with on_own_broker(icestream, tmp_path_factory.mktemp("kafka"), folder) as side:
        side.wait_until_ready()
        yield side


@pytest.fixture(scope="session")
def sides(theirs: Side, ours: Side) -> Sides:
    theirs.wait_until_ready()
    return Sides(theirs, ours)


@contextmanager
def on_own_broker(worker: Worker, data: Path, folder: Path) -> Iterator[Side]:
    """With a broker for itself: connectors of one name would share a consumer group."""
    with running_broker(data, free_port()) as broker:
        fill(broker.bootstrap)
        with worker(broker.bootstrap, folder) as side:
            yield side


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash.setdefault(TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = terminalreporter.config.stash.get(TALLY, None)
    if tally is not None and tally.outcomes:
        terminalreporter.write_line(str(tally))
