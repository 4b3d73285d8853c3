"""The Spark of tests: small, and quick to start rather than quick in the long run."""

from __future__ import annotations

from collections.abc import Mapping

SPARK: Mapping[str, str] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
