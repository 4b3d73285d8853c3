"""Every key of the Java sinks is declared here, and none is refused."""

from __future__ import annotations

from typing import Final

from icestream.connectors.iceberg.plugin import IcebergPlugin

APACHE: Final = (
    "iceberg.tables",
    "iceberg.tables.dynamic-enabled",
    "iceberg.tables.route-field",
    "iceberg.tables.default-commit-branch",
    "iceberg.tables.default-id-columns",
    "iceberg.tables.default-partition-by",
    "iceberg.tables.auto-create-enabled",
    "iceberg.tables.evolve-schema-enabled",
    "iceberg.tables.schema-force-optional",
    "iceberg.tables.schema-case-insensitive",
    "iceberg.tables.auto-create-props.",
    "iceberg.tables.write-props.",
    "iceberg.table.<table>.commit-branch",
    "iceberg.table.<table>.id-columns",
    "iceberg.table.<table>.partition-by",
    "iceberg.table.<table>.route-regex",
    "iceberg.control.topic",
    "iceberg.control.group-id-prefix",
    "iceberg.control.commit.interval-ms",
    "iceberg.control.commit.timeout-ms",
    "iceberg.control.commit.threads",
    "iceberg.control.commit.max-consecutive-failures",
    "iceberg.connect.group-id",
    "iceberg.coordinator.transactional.prefix",
    "iceberg.coordinator-executor-keep-alive-timeout-ms",
    "iceberg.catalog",
    "iceberg.catalog.",
    "iceberg.hadoop-conf-dir",
    "iceberg.hadoop.",
    "iceberg.kafka.",
)
"""All keys of the Apache connector, as of August 2026. One that ends with a dot begins others."""

TABULAR: Final = (
    "iceberg.tables.cdc-field",
    "iceberg.tables.upsert-mode-enabled",
    "iceberg.control.group-id",
    "iceberg.table.write-props.",
)
"""Those that Tabular's connector had besides."""
KEYS: Final = [key.replace("<table>", "ns.t") for key in (*APACHE, *TABULAR)]


def test_every_key_is_declared() -> None:
    definition = IcebergPlugin().definition({"iceberg.tables": "ns.t"})
    assert set(KEYS) - {*definition.names, *definition.prefixes} == set()


def test_no_key_is_refused_as_not_supported() -> None:
    example = {"connector.class": IcebergPlugin.classes[0].name, "iceberg.catalog.type": "rest"}
    refused = [
        problem.message
        for key in KEYS
        for value in ("true", "x")
        for problem in IcebergPlugin().problems({**example, "iceberg.tables": "ns.t", key: value})
        if "not supported by this version" in problem.message
    ]
    assert refused == []
