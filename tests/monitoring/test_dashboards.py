"""Our Grafana dashboards: what is shipped follows from the list of metrics, and leaves none of them out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from icestream.metrics.catalog import METRICS, Kind
from scripts.monitoring.__main__ import files
from scripts.monitoring.grafana import expressions

FOLDER = Path(__file__).parents[2] / "monitoring" / "grafana"
NAMES = ("icestream-overview", "icestream-connector")
OF_OTHERS = {"jvm_memory_bytes_used", "jvm_memory_bytes_max"}


def dashboard(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def test_all_files_are_written_from_the_lists() -> None:
    assert [path.name for path, text in files().items() if path.read_text() != text] == [], (
        "run: make monitoring"
    )


def test_every_metric_has_a_panel_and_no_panel_asks_for_another() -> None:
    endings = {Kind.HISTOGRAM: ("_bucket", "_sum", "_count"), Kind.SUMMARY: ("_sum", "_count")}
    names = {
        metric.name + ending: metric.name for metric in METRICS for ending in endings.get(metric.kind, ("",))
    }
    asked = set()
    for name in NAMES:
        for _, expression in expressions(dashboard(name)):
            found = re.findall(r"[a-z_]+(?=\{)", expression)
            assert found and set(found) <= names.keys(), expression
            asked |= {names[one] for one in found}
    assert {metric.name for metric in METRICS} - asked == OF_OTHERS


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap_and_have_numbers_of_their_own(name: str) -> None:
    panels = dashboard(name)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_of_a_query_is_declared(name: str) -> None:
    document = dashboard(name)
    known = {variable["name"] for variable in document["templating"]["list"]} | {"__rate_interval"}
    for _, expression in expressions(document):
        assert set(re.findall(r"\$(\w+)", expression)) <= known
