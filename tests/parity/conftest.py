"""Both workers, once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker, running_broker
from icestream.embedded.ports import free_port
from tests.parity.sending import Side
from tests.parity.sides import fill, icestream, kafka_connect


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
    """The real one, which may still be starting, with a broker for itself: connectors of one name would share
    a consumer group."""
    with running_broker(tmp_path_factory.mktemp("kafka"), free_port()) as broker:
        fill(broker.bootstrap)
        with kafka_connect(broker.bootstrap, folder) as side:
            yield side


@pytest.fixture(scope="session")
def ours(broker: Broker, folder: Path) -> Iterator[Side]:
    fill(broker.bootstrap)
    with icestream(broker.bootstrap, folder) as side:
        side.wait_until_ready()
        yield side


@pytest.fixture(scope="session")
def sides(theirs: Side, ours: Side) -> Sides:
    theirs.wait_until_ready()
    return Sides(theirs, ours)
