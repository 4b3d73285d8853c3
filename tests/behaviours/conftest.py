"""A broker for the implementations that need one; it starts only if one of their tests runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icestream.embedded.kafka import Broker, running_broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("behaviours") / "kafka") as running:
        yield running
