"""The machine and the versions that a result belongs to, and how much of the machine others took."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from bench.sides import ICEBERG_VERSION, KAFKA_VERSION


def machine() -> dict[str, Any]:
    """Cores, memory and processor: enough to compare results, nothing that names the machine."""
    return {
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "cpu": cpu_model(_read(Path("/proc/cpuinfo"))) or platform.processor() or platform.machine(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def cpu_model(cpuinfo: str) -> str | None:
    models = [
        line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")
    ]
    return models[0] if models else None


def versions(java: str) -> dict[str, str]:
    banner = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    return {
        "icestream": _version("icestream"),
        "pyspark": _version("pyspark"),
        "pyiceberg": _version("pyiceberg"),
        "kafka_connect": KAFKA_VERSION,
        "iceberg_kafka_connect": ICEBERG_VERSION,
        "java": banner.split('"')[1] if '"' in banner else "unknown",
        "python": platform.python_version(),
    }


class Foreign:
    """How much of the machine is used by others than the measured side, the broker and this process."""

    def __init__(self, known: Sequence[int]) -> None:
        self._known = [psutil.Process(pid) for pid in (*known, os.getpid())]
        self._started = time.monotonic()
        self._busy, self._ours = _busy(), self._cpu()

    def share(self, side_cpu: float) -> float:
        """Since this object was made, as a part of all cores; `side_cpu` is what the measured side used."""
        foreign = _busy() - self._busy - (self._cpu() - self._ours) - side_cpu
        return max(0.0, foreign / ((time.monotonic() - self._started) * (psutil.cpu_count() or 1)))

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._known)


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def reaped() -> float:
    """CPU-seconds of the children of this process that have ended, such as a load."""
    times = os.times()
    return times.children_user + times.children_system


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
