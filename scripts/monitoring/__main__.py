"""Writes `monitoring/` and its part of docs/observability.md: `make monitoring`."""

from __future__ import annotations

from pathlib import Path

from scripts.monitoring.dashboards import DASHBOARDS
from scripts.monitoring.grafana import dashboard_json
from scripts.monitoring.rules import page_with_runbooks, pod_rules_file, rule_resource, rules_file

TOP = Path(__file__).parents[2]
FOLDER = TOP / "monitoring"
PAGE = TOP / "docs" / "observability.md"


def files() -> dict[Path, str]:
    """All that is written, by where it is."""
    return {
        FOLDER / "rules.yaml": rules_file(),
        FOLDER / "rules-pods.yaml": pod_rules_file(),
        FOLDER / "prometheus-rule.yaml": rule_resource(),
        PAGE: page_with_runbooks(PAGE.read_text()),
        **{FOLDER / "grafana" / f"{one.uid}.json": dashboard_json(one) for one in DASHBOARDS},
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
