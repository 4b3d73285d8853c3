"""The definitions of our kinds: what `kubectl` shows, what is stored, which fields the schema has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from icestream.operator.kinds import ICESTREAM_CLUSTER, KAFKA_CONNECT, KAFKA_CONNECTOR, Kind
from tests.unit.operator.golden import resource

FOLDER = Path(__file__).parents[3] / "k8s" / "operator" / "crds"
FILES = {
    "icestream": ICESTREAM_CLUSTER,
    "kafkaconnects": KAFKA_CONNECT,
    "kafkaconnectors": KAFKA_CONNECTOR,
}


def definition(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


@pytest.mark.parametrize(("name", "kind"), FILES.items(), ids=FILES)
def test_a_definition_is_that_of_the_table_of_kinds(name: str, kind: Kind) -> None:
    spec = definition(name)["spec"]
    assert definition(name)["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert (spec["group"], spec["names"]["kind"]) == (kind.group, kind.name)
    assert tuple(one["name"] for one in spec["versions"] if one["served"]) == kind.versions
    assert [one["name"] for one in spec["versions"] if one["storage"]] == [kind.version]
    for version in spec["versions"]:
        assert set(version["subresources"]) == {"status", "scale"}
        assert "Ready" in [column["name"] for column in version["additionalPrinterColumns"]]


def test_every_field_of_our_kind_is_described() -> None:
    schema = definition("icestream")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    known = {"type", "description", "properties", "items", "required", "default"}
    limits = {"minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern"}
    for path, one in _fields(schema["properties"]["spec"], "spec"):
        assert one.get("description"), path
        assert {key for key in one if not key.startswith("x-kubernetes-")} <= known | limits, path


def test_the_schema_has_every_field_of_the_examples() -> None:
    schema = definition("icestream")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in ("cluster-from-s3", "job"):
        assert list(_unknown(resource(name)["spec"], schema["properties"]["spec"], "spec")) == []


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in schema.get("properties", {}).items():
        yield f"{path}.{name}", one
        yield from _fields(one, f"{path}.{name}")
        yield from _fields(one.get("items", {}), f"{path}.{name}[]")


def _unknown(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, dict):
        for key, one in value.items():
            if key in schema.get("properties", {}):
                yield from _unknown(one, schema["properties"][key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(value, list):
        for one in value:
            yield from _unknown(one, schema["items"], f"{path}[]")
