"""`icestream operator render`: what a resource becomes, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from icestream.cli.main import run
from tests.unit.operator.golden import EXAMPLES


def test_render_prints_the_objects_and_tells_its_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["operator", "render", "-f", str(EXAMPLES / "strimzi-v1beta2.yaml")]) == 0
    printed = capsys.readouterr()
    names = {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(printed.out)}
    assert ("Deployment", "my-connect-connect") in names
    assert ("Service", "my-connect-connect-api") in names
    assert "lake-sink-1.12.0.zip" in printed.err


def test_a_resource_that_is_wrong_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("{apiVersion: kafka.strimzi.io/v1, kind: KafkaConnect, metadata: {name: x}, spec: {}}")
    assert run(["operator", "render", "-f", str(file)]) == 1
    assert "spec.groupId is missing; set it" in capsys.readouterr().err


def test_a_file_without_a_cluster_and_one_that_is_no_yaml_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["operator", "render", "-f", str(EXAMPLES / "connector.yaml")]) == 1
    assert "no KafkaConnect or IcestreamCluster" in capsys.readouterr().err
    file = tmp_path / "broken.yaml"
    file.write_text("{a: [")
    assert run(["operator", "render", "-f", str(file)]) == 1
    assert "is not YAML" in capsys.readouterr().err
    file.write_text("[" * 60 + "]" * 60)
    assert run(["operator", "render", "-f", str(file)]) == 1
    assert "is not YAML (it is nested deeper than 50 levels)" in capsys.readouterr().err
