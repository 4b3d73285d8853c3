"""A broker that halts for longer than a transaction may last: a job that is alone goes on when it is back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.embedded import kafka
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from tests.crashes.conftest import StartManager
from tests.crashes.pipeline import Pipeline

HALTS = 75.0
"""Seconds: transactions have 60."""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    broker = kafka.start(tmp_path / "kafka", free_port(), die_with_parent=True)
    yield broker
    os.kill(broker.pid, signal.SIGCONT)
    kafka.kill(tmp_path / "kafka")


@pytest.mark.long
def test_a_lone_manager_outlives_a_broker_that_halts_in_mid_transaction(
    own_broker: Broker, tmp_path: Path, start_manager: StartManager
) -> None:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    pipeline = Pipeline(own_broker.bootstrap, folder, "halts").create()
    pipeline.produce(range(500), spoil=range(5))
    manager = start_manager(pipeline, on_spark=False)
    manager.wait_settled(pipeline)
    for turn in range(1, 4):
        before = manager.lines().count("closing")
        pipeline.produce(range(turn * 500, turn * 500 + 500), spoil=range(turn * 5, turn * 5 + 5))
        # Under way, or over already: the moment differs from turn to turn.
        manager.wait(
            lambda before=before: True if manager.lines().count("closing") > before else None,
            "no transaction",
        )
        os.kill(own_broker.pid, signal.SIGSTOP)
        time.sleep(HALTS)
        os.kill(own_broker.pid, signal.SIGCONT)
        manager.wait_settled(pipeline)
    manager.assert_alive()
    pipeline.check()
