"""Opens what a connector config points at and says what is wrong with it, by key. Called by the service for
`validate` and before a connector is created."""

from __future__ import annotations

from icestream.api.config import Config
from icestream.api.errors import Problem
from icestream.plugins import ICEBERG_SETTINGS, find_connector

SECONDS = 10.0
"""How long a thing may take to answer; all are asked at the same time."""


def check_connector(config: Config, worker: Config, seconds: float = SECONDS) -> list[Problem]:
    """Connectors without a catalog are not looked at: Kafka Connect starts them whatever they point at."""
    if find_connector(config.get("connector.class", "")).settings_module != ICEBERG_SETTINGS:
        return []
    # Late: what opens tables is slow to import.
    from icestream.jobs.check_iceberg import check_iceberg

    return check_iceberg(config, worker, seconds)
