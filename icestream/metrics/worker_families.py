"""What a scrape hears of the worker itself: versions, group, Spark."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from prometheus_client.metrics_core import Metric as Family

from icestream import __version__
from icestream.api.engine import EngineNumbers, JvmNumbers
from icestream.metrics import catalog
from icestream.metrics.catalog import Metric
from icestream.metrics.facts import WorkerFacts
from icestream.metrics.families import add, add_summary, family_of


def worker_families(facts: WorkerFacts) -> Iterator[Family]:
    yield _one(catalog.INFO, 1, _versions())
    if facts.is_healthy is not None:
        yield _one(catalog.HEALTHY, facts.is_healthy)
    if facts.group is not None:
        yield _one(catalog.LEADER, facts.group.leads)
        yield _one(catalog.REBALANCES, facts.group.rebalances)
    if facts.engine is not None:
        yield from _engine(facts.engine)


def _engine(engine: EngineNumbers) -> Iterator[Family]:
    yield _one(catalog.SPARK_UP, engine.is_up)
    if engine.tasks:
        yield _each(
            catalog.SPARK_TASKS, {state: engine.tasks.get(state, 0) for state in catalog.SPARK_TASKS.values}
        )
    if engine.executors is not None:
        yield _one(catalog.SPARK_EXECUTORS, engine.executors)
    if engine.jvm is not None:
        yield from _jvm(engine.jvm)


def _jvm(jvm: JvmNumbers) -> Iterator[Family]:
    for metric in (catalog.JVM_USED, catalog.JVM_USED_OLD):
        yield _each(metric, jvm.used)
    for metric in (catalog.JVM_MAX, catalog.JVM_MAX_OLD):
        yield _each(metric, jvm.most)
    collections = family_of(catalog.JVM_GC)
    for name, one in jvm.collectors.items():
        add_summary(collections, catalog.JVM_GC, {"gc": name}, one.collections, one.seconds)
    yield collections
    yield _one(catalog.JVM_THREADS, jvm.threads)


def _one(metric: Metric, value: float, labels: dict[str, str] | None = None) -> Family:
    family = family_of(metric)
    add(family, metric, labels or {}, float(value))
    return family


def _each(metric: Metric, by_label: Mapping[str, float]) -> Family:
    family = family_of(metric)
    for value, number in by_label.items():
        add(family, metric, {metric.labels[-1]: value}, number)
    return family


@functools.cache
def _versions() -> dict[str, str]:
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        spark = ""
    return {"version": __version__, "python_version": platform.python_version(), "spark_version": spark}
