"""What the page about catalogs shows can be used as it is."""

from __future__ import annotations

import pytest

from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.opening import catalog_properties
from icestream.connectors.iceberg.settings import problems, warnings
from tests.catalog_examples import examples

WHOLE = {
    "iceberg.tables": "ns.t",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://catalog:8181",
}


@pytest.mark.parametrize("heading", sorted(examples()))
def test_an_example_has_neither_problems_nor_warnings(heading: str) -> None:
    shown = examples()[heading]
    config = {**({} if "iceberg.catalog.warehouse" in shown else WHOLE), **shown, "iceberg.tables": "ns.t"}
    assert problems(config) == [] and warnings(config) == []
    assert catalog_properties(config)["type"] in ("sql", "rest", "hive", "glue", "dynamodb")
    assert java_catalog(config).properties


def test_each_kind_has_an_example() -> None:
    assert {*examples()} >= {"PostgreSQL", "MySQL and MariaDB", "REST", "Hive", "Glue", "DynamoDB", "S3"}
