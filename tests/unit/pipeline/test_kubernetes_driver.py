"""Spark's driver in a pod is told of its pod, and of nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.pipeline.kubernetes import driver_settings
from icestream.pipeline.session import is_local, slots, spark_settings

MASTER = {"spark.master": "k8s://https://kubernetes.default.svc:443"}
POD = {"POD_NAME": "connect-0", "POD_IP": "10.1.2.3", "POD_NAMESPACE": "lake"}


def test_the_driver_knows_its_pod(tmp_path: Path) -> None:
    assert driver_settings(MASTER, POD, tmp_path / "none") == {
        "spark.kubernetes.driver.pod.name": "connect-0",
        "spark.driver.host": "10.1.2.3",
        "spark.kubernetes.namespace": "lake",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.port": "7078",
        "spark.driver.blockManager.port": "7079",
    }


def test_without_variables_the_account_tells_the_namespace(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    file.write_text("lake\n")
    assert driver_settings(MASTER, {}, file)["spark.kubernetes.namespace"] == "lake"
    assert (
        driver_settings(MASTER, POD | {"POD_NAMESPACE": "other"}, file)["spark.kubernetes.namespace"]
        == "other"
    )


@pytest.mark.parametrize("master", ["local[*]", "spark://a:7077", ""])
def test_elsewhere_a_pod_means_nothing(master: str, tmp_path: Path) -> None:
    assert driver_settings({"spark.master": master}, POD, tmp_path / "none") == {}


def test_what_is_given_wins_and_nothing_of_a_local_master_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in POD.items():
        monkeypatch.setenv(name, value)
    settings = spark_settings({**MASTER, "spark.driver.port": "9000", "spark.driver.host": "driver.lake.svc"})
    assert settings["spark.driver.port"] == "9000"
    assert settings["spark.driver.host"] == "driver.lake.svc"
    assert settings["spark.kubernetes.namespace"] == "lake"
    assert "spark.driver.memory" not in settings
    assert not is_local(MASTER) and slots(MASTER, 7) == 7


def test_a_key_of_a_variable_gets_its_capital_letters_back() -> None:
    settings = spark_settings({**MASTER, "spark.kubernetes.executor.podtemplatefile": "/etc/executor.yaml"})
    assert settings["spark.kubernetes.executor.podTemplateFile"] == "/etc/executor.yaml"
    assert "spark.kubernetes.executor.podtemplatefile" not in settings
