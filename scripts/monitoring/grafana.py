"""Dashboards as Grafana imports them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from icestream.metrics import catalog
from scripts.monitoring.dashboards import CONNECTOR, DASHBOARDS, Dashboard
from scripts.monitoring.panels import Panel, Query, Row

SCHEMA: Final = 41
"""That of Grafana 12; older ones take it, newer ones change it by themselves."""
_WIDTH: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard_json(dashboard: Dashboard) -> str:
    return json.dumps(_document(dashboard), indent=1, ensure_ascii=False) + "\n"


def expressions(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Every query of a dashboard, with the title of its panel."""
    return [
        (panel["title"], target["expr"])
        for panel in document["panels"]
        for target in panel.get("targets", [])
    ]


def _document(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": f"{dashboard.about} Written by `make monitoring` from the list of metrics.",
        "tags": ["icestream", "kafka-connect"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": []},
        "links": [_link(other) for other in DASHBOARDS if other is not dashboard],
        "templating": {"list": list(_variables(dashboard))},
        "panels": list(_panels(dashboard.rows)),
    }


def _link(other: Dashboard) -> dict[str, Any]:
    return {
        "title": other.title,
        "type": "link",
        "url": f"/d/{other.uid}",
        "keepTime": True,
        "includeVars": True,
        "targetBlank": False,
    }


def _variables(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
    }
    yield _variable("job", "Cluster", f"label_values({catalog.INFO.name}, job)", multi=True)
    if dashboard.has_connector:
        series = f'{catalog.STATE.name}{{job=~"$job"}}'
        yield _variable("connector", "Connector", f"label_values({series}, connector)", multi=False)


def _variable(name: str, label: str, query: str, *, multi: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": multi,
    }
    if multi:
        found |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
    return found


def _panels(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    """Side by side until a line is full, then below."""
    number, top = 1, 0
    for row in rows:
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": place,
        }
        number, top, left, tallest = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, tallest = top + tallest, 0, 0
            yield _panel(panel, number, {"x": left, "y": top, "w": panel.width, "h": panel.height})
            number, left, tallest = number + 1, left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": place,
        "targets": [_target(query, "ABCDEFGH"[at]) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": {},
    }
    if panel.kind == "timeseries":
        made["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    elif panel.kind == "stat":
        by_name = bool(panel.queries[0].legend)
        made["options"] = {
            "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
            "textMode": "name" if by_name else "value",
            "colorMode": "value",
            "graphMode": "none",
        }
    elif panel.kind == "table":
        made |= _table(panel, made["fieldConfig"])
    return made


def _target(query: Query, letter: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "refId": letter,
        "datasource": _SOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "range": not query.is_instant,
        "instant": query.is_instant,
    }
    return made


def _defaults(panel: Panel) -> dict[str, Any]:
    steps = [{"value": None if at == 0 else at, "color": colour} for at, colour in panel.limits]
    made: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "stat":
        made["thresholds"] = {"mode": "absolute", "steps": steps or [{"value": None, "color": "blue"}]}
    if panel.kind == "timeseries":
        made["custom"] = {
            "lineWidth": 1,
            "fillOpacity": 40 if panel.stacked else 10,
            "showPoints": "never",
            "stacking": {"mode": "normal" if panel.stacked else "none"},
        }
    return made


def _table(panel: Panel, config: dict[str, Any]) -> dict[str, Any]:
    """One line for each connector, with the numbers of all queries beside each other."""
    link = {
        "title": CONNECTOR.title,
        "url": f"/d/{CONNECTOR.uid}?var-connector=${{__value.text:percentencode}}",
    }
    overrides = [_override("connector", [{"id": "links", "value": [link]}])]
    renamed = {"connector": "connector", "state": "State"}
    for letter, title, unit in panel.columns[1:]:
        renamed[f"Value #{letter}"] = title
        overrides.append(_override(title, [{"id": "unit", "value": unit}]))
    for targets in (panel.queries,):
        assert len(targets) == len(panel.columns)
    return {
        "fieldConfig": {**config, "overrides": overrides},
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True, "Value #A": True},
                    "renameByName": renamed,
                },
            },
        ],
        "options": {"showHeader": True, "cellHeight": "sm"},
    }


def _override(name: str, properties: list[dict[str, Any]]) -> dict[str, Any]:
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}
