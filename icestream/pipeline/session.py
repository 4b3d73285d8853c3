"""The Spark session of a worker, from its `spark.*` settings. One per process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

_DEFAULTS: Mapping[str, str] = {
    "spark.app.name": "icestream",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": (Path(__file__).parent / "fair-scheduler.xml").as_uri(),
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "icestream.pipeline.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.log.level": "ERROR",
}
_LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=4",
}


def spark_settings(worker: Mapping[str, str]) -> dict[str, str]:
    """The `spark.*` keys of a worker config over our defaults."""
    given = {key: value for key, value in worker.items() if key.startswith("spark.")}
    if "spark.remote" in given:
        return given
    settings = {**_DEFAULTS, **given}
    if settings["spark.master"].startswith("local"):
        settings = {**_LOCAL_DEFAULTS, **settings}
    return settings


def open_session(worker: Mapping[str, str]) -> SparkSession:
    settings = dict(spark_settings(worker))
    # Python workers must be this very Python: they unpickle our code. On a cluster it may lie elsewhere.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.Builder()
    if remote := settings.pop("spark.remote", None):
        builder = builder.remote(remote)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def slots(worker: Mapping[str, str], tasks_max: int) -> int:
    """How many tasks of one batch should run at once: never more than `tasks.max`, nor than a local master
    runs."""
    local = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", spark_settings(worker).get("spark.master", ""))
    if not local:
        return tasks_max
    threads = local.group(1)
    cores = 1 if threads is None else (os.cpu_count() or 1) if threads == "*" else int(threads)
    return max(1, min(tasks_max, cores))
