"""The job manager of Java workers by its public names. Made by the plugin for `icestream job-manager`."""

from __future__ import annotations

from collections.abc import Callable

from icestream.api.errors import FatalError
from icestream.api.status import Progress
from icestream.connectors.iceberg.job_config import IcebergJobConfig

__all__ = ["IcebergJobConfig", "IcebergJobManager"]


class IcebergJobManager:
    """A `Manager` (`api/manager.py`): `tick` is one turn, `progress` is shown by /metrics, `cancel` ends the
    turn after the commit under way."""

    def __init__(self, config: IcebergJobConfig, wake: Callable[[], None] = lambda: None) -> None:
        self._config = config
        self.progress = Progress()

    def tick(self) -> float:
        raise FatalError("this version does not coordinate Java workers; run the connector on ours")

    def cancel(self) -> None:
        return

    def allow(self) -> None:
        return

    def close(self) -> None:
        return
