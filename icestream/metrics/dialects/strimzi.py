"""Dialect A: the names that Strimzi's rules for the JMX exporter make, which `strimzi-kafka-connect.json`
asks for."""

from __future__ import annotations

import functools
from typing import Final

from icestream.metrics.dialects.attributes import (
    APP_INFO,
    CONNECTOR,
    FETCH_PARTITION,
    PREDICATE,
    REBALANCE,
    SINK_TASK,
    SOURCE_TASK,
    TASK,
    TASK_ERROR,
    TRANSFORM,
    WORKER,
    WORKER_CONNECTOR,
    Group,
)
from icestream.metrics.dialects.families import Shape, underscored

_OF_TASKS: Final = (
    *("-count", "-ms", "-ratio", "-seq-no", "-rate", "-max", "-avg", "-failures", "-requests", "-timestamp"),
    *("-logged", "-errors", "-retries", "-skipped"),
)
_OF_CLIENTS: Final = (
    *("-avg", "-bytes", "-count", "-ratio", "-age", "-flight", "-threads", "-connectors", "-tasks", "-ago"),
)
_OF_PARTITIONS: Final = ("-avg", "-replica", "-lag", "-lead")
_TASK_GROUPS: Final = (TASK, SOURCE_TASK, SINK_TASK, TASK_ERROR)
_TOTAL: Final = "-total"


@functools.cache
def strimzi_shapes(group: Group, attribute: str) -> tuple[Shape, ...]:
    if group is APP_INFO:
        return _app_info(attribute)
    if group in (TRANSFORM, PREDICATE) or not _lets_through(group, attribute):
        return ()
    name = f"{_stem(group)}_{underscored(attribute)}"
    labels = tuple(_label(tag) for tag in group.tags)
    if attribute in group.texts:
        return (Shape(name, labels=labels, text=underscored(attribute)),)
    return (Shape(name, "counter" if attribute.endswith(_TOTAL) else "gauge", labels),)


def _stem(group: Group) -> str:
    """Strimzi's rules take the client's kind from the type, and Connect's own types without `connect-`."""
    kind = group.name.removesuffix("-metrics")
    if group in (WORKER, WORKER_CONNECTOR, REBALANCE) or not group.tags:
        kind = kind.removeprefix("connect-")
    if "client-id" not in group.tags:
        return f"kafka_connect_{underscored(kind)}"
    return f"kafka_{underscored(kind)}"


def _label(tag: str) -> str:
    # Its rules write clientId, and its labels are lower case.
    return tag.replace("-", "")


def _lets_through(group: Group, attribute: str) -> bool:
    if group in (WORKER, WORKER_CONNECTOR, REBALANCE, CONNECTOR):
        return True
    if attribute in group.texts:
        return group is TASK and attribute == "status"
    if attribute.endswith(_TOTAL):
        return True
    if group in _TASK_GROUPS:
        return attribute.endswith(_OF_TASKS)
    if group is FETCH_PARTITION:
        return attribute.endswith(_OF_PARTITIONS)
    return attribute.endswith(_OF_CLIENTS)


def _app_info(attribute: str) -> tuple[Shape, ...]:
    if attribute == "start-time-ms":
        return (Shape("kafka_connect_start_time_seconds", labels=("clientid",), factor=0.001),)
    name = f"kafka_connect_{underscored(attribute)}"
    # The rule says `_info`, which JMX exporters from 1.0 cut: both are in use.
    return tuple(
        Shape(one, labels=("clientid",), text=underscored(attribute)) for one in (name, f"{name}_info")
    )
