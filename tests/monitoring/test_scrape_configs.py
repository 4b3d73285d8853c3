"""The scrape configs that we ship: Prometheus takes them; they add the labels that dashboards choose by."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.programs import needs_program

FOLDER = Path(__file__).parents[2] / "monitoring" / "prometheus"
CONFIGS = ("icestream", "confluent", "strimzi")


def loaded(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


@needs_program("promtool")
@pytest.mark.parametrize("name", CONFIGS)
def test_prometheus_takes_a_config_with_its_rules(name: str, tmp_path: Path) -> None:
    config = loaded(name)
    for scrape in config["scrape_configs"]:
        # Debian's Prometheus is built without Kubernetes.
        if scrape.pop("kubernetes_sd_configs", None) is not None:
            scrape["static_configs"] = [{"targets": ["localhost:9404"]}]
    config["rule_files"] = [str((FOLDER / one).resolve()) for one in config["rule_files"]]
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    command = ["promtool", "check", "config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rules found" in done.stdout


def test_confluents_dashboard_finds_its_labels() -> None:
    (scrape,) = loaded("confluent")["scrape_configs"]
    assert scrape["job_name"] == "kafka-connect"
    (static,) = scrape["static_configs"]
    added = {*static["labels"], *(one["target_label"] for one in scrape["relabel_configs"])}
    assert added == {"env", "kafka_connect_cluster_id", "hostname"}


def test_strimzis_dashboard_finds_its_labels_with_and_without_an_operator() -> None:
    (scrape,) = loaded("strimzi")["scrape_configs"]
    plain = {one.get("target_label") or one["regex"] for one in scrape["relabel_configs"]}
    (endpoint,) = loaded("pod-monitor")["spec"]["podMetricsEndpoints"]
    by_operator = {one.get("targetLabel") or one["regex"] for one in endpoint["relabelings"]}
    assert by_operator == {
        "__meta_kubernetes_pod_label_(strimzi_io_.+)",
        *("namespace", "kubernetes_pod_name", "node_name", "node_ip"),
    }
    # The operator adds the pod by itself.
    assert by_operator | {"pod"} <= plain
    assert (endpoint["path"], endpoint["port"]) == ("/metrics", "tcp-prometheus")
