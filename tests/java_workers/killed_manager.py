"""A job manager that kills itself at a point of its work, as `kill -9` would: `killed_manager.py POINT`."""

from __future__ import annotations

import os
import signal
import sys

from icestream.connectors.iceberg.coordinator.job_manager import IcebergJobConfig, IcebergJobManager


def main(point: str) -> None:
    def reached(now: str) -> None:
        if now == point:
            os.kill(os.getpid(), signal.SIGKILL)

    manager = IcebergJobManager(IcebergJobConfig.from_environment(os.environ), reached=reached)
    while True:
        manager.tick()


if __name__ == "__main__":
    main(sys.argv[1])
