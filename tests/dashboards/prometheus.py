"""Debian's Prometheus as a process, with a scrape config that we ship."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from icestream.embedded.ports import free_port
from tests.kit.programs import require_program

CONFIGS: Final = Path(__file__).parents[2] / "monitoring" / "prometheus"
_PATIENCE_S: Final = 60.0


def shipped_config(name: str, target: str, pod: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A config of ours that scrapes one worker, every second. `pod` is what Kubernetes would tell of it."""
    config: dict[str, Any] = yaml.safe_load((CONFIGS / name).read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config.pop("rule_files", None)
    (job,) = config["scrape_configs"]
    if job.pop("kubernetes_sd_configs", None):
        labels = {f"__meta_kubernetes_{key}": value for key, value in (pod or {}).items()}
        job["static_configs"] = [{"targets": [target], "labels": labels}]
    else:
        for one in job["static_configs"]:
            one["targets"] = [target]
    return config


class Prometheus:
    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(timeout=30, trust_env=False)

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The result of a query now; raises AssertionError with what Prometheus says against it."""
        result: list[dict[str, Any]] = self._answer("query", query=expression)["result"]
        return result

    def course(self, expression: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The same over a time, in epoch seconds."""
        times = {"start": str(start), "end": str(end), "step": str(step)}
        result: list[dict[str, Any]] = self._answer("query_range", query=expression, **times)["result"]
        return result

    def rules(self) -> dict[str, str]:
        """The health of each rule, by its name."""
        return {
            rule["name"]: rule["health"] for one in self._answer("rules")["groups"] for rule in one["rules"]
        }

    def _answer(self, path: str, **parameters: str) -> dict[str, Any]:
        url = f"{self.url}/api/v1/{path}"
        answer = self._client.get(url, params=parameters).json()
        assert answer["status"] == "success", f"{parameters.get('query')}: {answer.get('error')}"
        data: dict[str, Any] = answer["data"]
        return data

    def is_ready(self) -> bool:
        try:
            return self._client.get(f"{self.url}/-/ready").status_code == 200
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        self._client.close()

    def number(self, expression: str) -> float:
        """Of the only series; NaN without one."""
        found = self.ask(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else math.nan


@contextmanager
def running_prometheus(config: Mapping[str, Any], folder: Path) -> Iterator[Prometheus]:
    command = require_program("prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(dict(config)))
    port = free_port()
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                command,
                f"--config.file={folder / 'prometheus.yaml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    running = Prometheus(f"http://127.0.0.1:{port}")
    try:
        _wait_until_ready(running, process, log)
        yield running
    finally:
        running.close()
        process.terminate()
        process.wait(30)


def _wait_until_ready(running: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not running.is_ready():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)
