"""Our dashboards and alerts in a real Prometheus that scrapes a busy worker: every query is understood, and
all but those about trouble find something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icestream.kafka.topics import Topics
from scripts.monitoring.alerts import ALERTS, PODS
from scripts.monitoring.grafana import expressions
from tests.dashboards.prometheus import Prometheus, running_prometheus, shipped_config
from tests.integration.worker_world import World, eventually
from tests.kit.programs import needs_program

TOP = Path(__file__).parents[2]
NAME = "watched"
WINDOW = "20s"
pytestmark = needs_program("prometheus")

EMPTY: dict[str, set[str]] = {
    "icestream-overview": set(),
    "icestream-connector": {"Maintenance last, time since", "Commit next"},
}
"""Panels that have nothing to show where nothing has gone wrong, and no maintenance runs."""


@pytest.fixture(scope="module")
def prometheus(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scrapes the worker every second, by the config that we ship."""
    config = shipped_config("icestream.yaml", world.url.removeprefix("http://"))
    config["global"]["evaluation_interval"] = "1s"
    config["rule_files"] = [str(TOP / "monitoring" / "rules.yaml")]
    with running_prometheus(config, tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="module")
def busy(world: World, prometheus: Prometheus) -> Iterator[Prometheus]:
    """A connector that has landed, rejected and filtered records while Prometheus looked."""
    world.topic(NAME)
    Topics({"bootstrap.servers": world.bootstrap}).create(f"{NAME}-letters", 1, 1)
    config = world.config(
        NAME,
        errors__tolerance="all",
        **{
            "errors.deadletterqueue.topic.name": f"{NAME}-letters",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "transforms": "tombstones",
            "transforms.tombstones.type": "org.apache.kafka.connect.transforms.Filter",
            "transforms.tombstones.predicate": "empty",
            "predicates": "empty",
            "predicates.empty.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        },
    )
    world.client.create(NAME, config)
    chosen = f'{{connector="{NAME}"}}'

    def is_seen() -> bool:
        world.produce(NAME, *({"id": number, "text": "x"} for number in range(50)), b"not JSON", None)
        names = ("records_rejected", "records_filtered", "commits", "dead_letters")
        rates = (f"rate(icestream_{name}_total{chosen}[{WINDOW}]) > 0" for name in names)
        return all(map(prometheus.ask, rates))

    eventually(is_seen)
    yield prometheus
    world.client.delete(NAME)


def asked(expression: str) -> str:
    """As Grafana would send it."""
    return expression.replace("$job", ".*").replace("$connector", NAME).replace("$__rate_interval", WINDOW)


@pytest.mark.parametrize("name", list(EMPTY))
def test_every_panel_has_something_to_show(busy: Prometheus, name: str) -> None:
    document: dict[str, Any] = json.loads((TOP / "monitoring" / "grafana" / f"{name}.json").read_text())
    empty = {title for title, expression in expressions(document) if not busy.ask(asked(expression))}
    assert empty - EMPTY[name] == set()


def test_every_alert_can_be_evaluated(busy: Prometheus) -> None:
    eventually(lambda: set(busy.rules().values()) == {"ok"})
    assert set(busy.rules()) == {alert.name for alert in ALERTS if alert not in PODS}
    firing = {one["metric"]["alertname"] for one in busy.ask('ALERTS{alertstate="firing"}')}
    assert not {name for name in firing if name.startswith("Icestream")}
