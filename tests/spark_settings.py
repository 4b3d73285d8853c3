"""The Spark of tests: small, and quick to start rather than quick in the long run."""

from __future__ import annotations

import functools
from collections.abc import Mapping

SPARK: Mapping[str, str] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


@functools.cache
def with_iceberg() -> dict[str, str]:
    """With Iceberg's runtime, for commits that are queries; downloaded once."""
    from icestream.cli.sql import jar_settings

    catalog = {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:sqlite:a.db"}
    return {**SPARK, **jar_settings([{"connector.class": "IcebergSink", **catalog}])}
