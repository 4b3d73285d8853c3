"""The alerts: what is shipped is what the code says, Prometheus takes it, and each fires when it should."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from scripts.monitoring.alerts import ALERTS, COMMIT_INTERVAL, PODS
from scripts.monitoring.rules import pod_rules_file, rule_resource, rules_file, runbooks
from tests.kit.programs import needs_program
from tests.monitoring.alert_cases import CASES, Series

TOP = Path(__file__).parents[2]
RULES = TOP / "monitoring" / "rules.yaml"
POD_RULES = TOP / "monitoring" / "rules-pods.yaml"
needs_promtool = needs_program("promtool")


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_files_are_written_from_the_list() -> None:
    assert RULES.read_text() == rules_file(), "run: make monitoring"
    resource = (TOP / "monitoring" / "prometheus-rule.yaml").read_text()
    assert resource == rule_resource(), "run: make monitoring"
    assert POD_RULES.read_text() == pod_rules_file(), "run: make monitoring"
    assert yaml.safe_load(resource)["spec"]["groups"] == shipped_groups()


def shipped_groups() -> list[dict[str, Any]]:
    return [group for file in (POD_RULES, RULES) for group in yaml.safe_load(file.read_text())["groups"]]


def test_a_worker_outside_of_kubernetes_has_no_alert_on_what_only_pods_have() -> None:
    """`absent(container_last_seen…)` fired for good where there is no cAdvisor."""
    rules = yaml.safe_load(RULES.read_text())["groups"]
    assert not [one["alert"] for group in rules for one in group["rules"] if "container_" in one["expr"]]
    for name, files in (("icestream", 1), ("confluent", 1), ("strimzi", 2)):
        config = yaml.safe_load((TOP / "monitoring" / "prometheus" / f"{name}.yaml").read_text())
        assert len(config["rule_files"]) == files


def test_every_alert_has_a_runbook_that_is_there() -> None:
    page = (TOP / "docs" / "observability.md").read_text()
    assert runbooks() in page, "run: make monitoring"
    for group in shipped_groups():
        for rule in group["rules"]:
            assert f"\n#### {rule['alert']}\n" in page
            assert set(rule["annotations"]) == {"summary", "description", "action", "runbook"}


def test_alerts_ask_for_metrics_that_we_have() -> None:
    from icestream.metrics.catalog import METRICS

    known = {metric.name: metric for metric in METRICS}
    for alert in ALERTS:
        for name in re.findall(r"icestream_[a-z_]+", alert.expression):
            metric = known[name.removesuffix("_bucket")]
            for label, value in re.findall(rf'{name}\{{(\w+)="(\w+)"', alert.expression):
                assert label in metric.labels and value in metric.values, alert.name


@needs_promtool
def test_prometheus_takes_the_rules() -> None:
    assert f"SUCCESS: {len(ALERTS) - len(PODS)} rules found" in promtool("check", "rules", str(RULES))
    assert f"SUCCESS: {len(PODS)} rules found" in promtool("check", "rules", str(POD_RULES))


@needs_promtool
def test_every_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert set(CASES) == {alert.name for alert in ALERTS}
    rules = [rule for group in shipped_groups() for rule in group["rules"]]
    # A file for each: promtool evaluates every rule of a file at every minute of every test.
    promtool("test", "rules", *(str(written_test(tmp_path, at, rule)) for at, rule in enumerate(rules)))


def written_test(folder: Path, number: int, rule: dict[str, Any]) -> Path:
    """Its labels and annotations are left out: promtool would compare them word by word."""
    case = CASES[rule["alert"]]
    bare = {"alert": rule["alert"], "expr": f"count({rule['expr']}) > 0", "for": rule["for"]}
    of_rule = folder / f"rule-{number}.yaml"
    of_rule.write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [bare]}]}))
    tests = [
        case_of(rule["alert"], series, case.at, fires=fires)
        for fires, series in ((True, case.fires), (False, case.quiet))
    ]
    file = folder / f"test-{number}.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [of_rule.name], "tests": tests}))
    return file


def case_of(name: str, series: Series, at: str, *, fires: bool) -> dict[str, object]:
    return {
        "name": f"{name} {'fires' if fires else 'is quiet'}",
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": [{}] if fires else []}],
    }


def test_the_limit_of_the_first_alert_follows_the_default_interval() -> None:
    from icestream.connectors.iceberg.settings import ICEBERG_SINK

    (interval,) = (one for one in ICEBERG_SINK.settings if one.name == "iceberg.control.commit.interval-ms")
    assert interval.default == COMMIT_INTERVAL * 1000
