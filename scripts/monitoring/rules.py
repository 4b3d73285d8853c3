"""The rules as Prometheus reads them from a file, and as its operator reads them from Kubernetes."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from scripts.monitoring.alerts import GROUPS, POD_GROUP, Alert

RUNBOOKS: Final = "docs/observability.md"
_HEAD: Final = "# Written by `make monitoring` from scripts/monitoring/alerts.py: change it there.\n"


def rules_file() -> str:
    return _HEAD + _yaml({"groups": [group for group in _groups() if group["name"] != POD_GROUP]})


def pod_rules_file() -> str:
    """For a Prometheus that sees cAdvisor's metrics of Strimzi's pods."""
    return _HEAD + _yaml({"groups": [group for group in _groups() if group["name"] == POD_GROUP]})


def rule_resource() -> str:
    return _HEAD + _yaml(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "icestream", "labels": {"app": "icestream", "role": "alert-rules"}},
            "spec": {"groups": _groups()},
        }
    )


def runbooks() -> str:
    """The part of docs/observability.md."""
    parts = []
    for group, alerts in GROUPS.items():
        for alert in alerts:
            parts.append(
                f"#### {alert.name}\n\n"
                f"`{group}`, {alert.severity}, after {alert.lasts}. {_without_labels(alert.description)}\n\n"
                f"    {alert.expression}\n\n{alert.to_do}\n"
            )
    return "\n".join(parts)


def page_with_runbooks(text: str) -> str:
    """docs/observability.md with the alerts that there are."""
    pattern = re.compile(r"(<!-- alerts -->\n).*?(<!-- end of alerts -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}\n{runbooks()}\n{found[2]}", text)


def _groups() -> list[dict[str, Any]]:
    return [{"name": name, "rules": [_rule(alert) for alert in alerts]} for name, alerts in GROUPS.items()]


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasts,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "action": alert.to_do,
            "runbook": f"{RUNBOOKS}#{alert.anchor}",
        },
    }


def _without_labels(text: str) -> str:
    for template, words in {
        "{{ $labels.connector }}": "a connector",
        "{{ $labels.instance }}": "a worker",
        "{{ $labels.target }}": "a destination",
        "{{ $labels.job }}": "a cluster",
        "{{ $value | humanizeDuration }}": "so long",
        "{{ $value | humanizePercentage }}": "more than allowed",
        "{{ $value | humanize }}": "several",
        "{{ $value | humanize1024 }}B": "few bytes",
        "{{ $value }}": "Some",
    }.items():
        text = text.replace(template, words)
    return text[:1].upper() + text[1:]


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, width=140, allow_unicode=True))
