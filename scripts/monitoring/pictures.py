"""Draws the dashboards for the docs, from a worker that is busy for some minutes and a Prometheus that looks
at it: `make pictures`. Needs Debian's prometheus."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from scripts.monitoring.drawing import draw
from tests.dashboards.prometheus import Prometheus, running_prometheus, shipped_config
from tests.integration.worker_world import World, running_world

TOP: Final = Path(__file__).parents[2]
FOLDER: Final = TOP / "docs" / "images"
CONNECTORS: Final = ("apilogs", "orders", "payments")
SECONDS: Final = 180
ROWS: Final = {"icestream-overview": 40, "icestream-connector": 38}
_WINDOW: Final = "15s"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_world(Path(folder)) as world:
        config = shipped_config("icestream.yaml", world.url.removeprefix("http://"))
        with running_prometheus(config, Path(folder) / "prometheus") as prometheus:
            began = time.time()
            work(world, SECONDS)
            pictures(prometheus, began)


def work(world: World, seconds: float) -> None:
    """Records that come in waves, some of them bad."""
    for at, name in enumerate(CONNECTORS):
        world.topic(name)
        letters = {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{name}-letters",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "iceberg.control.commit.interval-ms": str(2000 + 1000 * at),
        }
        world.client.create(name, {**world.config(name), **letters})
    until, turn = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for at, name in enumerate(CONNECTORS):
            many = 400 * (1 + (turn + 7 * at) % 20) // (1 + at)
            bad = [b"not JSON"] * (turn % 3 if name == "orders" else 0)
            world.produce(name, *({"id": number, "text": "x" * 100} for number in range(many)), *bad)
        turn += 1
        time.sleep(1)


def pictures(prometheus: Prometheus, began: float) -> None:
    end = time.time()

    def ask(expression: str, is_instant: bool) -> list[dict[str, Any]]:
        for name, value in {"$job": ".*", "$connector": "orders", "$__rate_interval": _WINDOW}.items():
            expression = expression.replace(name, value)
        if is_instant:
            return prometheus.ask(expression)
        return prometheus.course(expression, began + 20, end, (end - began) / 90)

    FOLDER.mkdir(exist_ok=True)
    for name, rows in ROWS.items():
        document = json.loads((TOP / "monitoring" / "grafana" / f"{name}.json").read_text())
        draw(document, ask, FOLDER / f"{name.replace('icestream', 'dashboard')}.png", rows)


if __name__ == "__main__":
    main()
