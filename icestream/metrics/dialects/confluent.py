"""Dialects B and C in one: the names of Confluent's rules for the JMX exporter (of exporters before and after
1.0, which cuts `_total`), and those of Strimzi's Metrics Reporter, which are mostly the same.

Each fact is written once under a name, with Confluent's labels: two series of one name would be counted twice
by a `sum`.
"""

from __future__ import annotations

import functools
from typing import Final

from icestream.metrics.dialects.attributes import APP_INFO, CONNECTOR, WORKER, Group
from icestream.metrics.dialects.families import Shape, underscored

_TOTAL: Final = "_total"
_CLIENT_TYPES: Final = {"kafka.consumer": "consumer", "kafka.producer": "producer"}
_APP: Final = ("kafka_connect_app", "kafka_connect_app_info")


@functools.cache
def confluent_shapes(group: Group, attribute: str) -> tuple[Shape, ...]:
    stem = f"{underscored(group.domain)}_{underscored(group.name)}"
    labels = tuple(underscored(tag) for tag in group.tags)
    word = underscored(attribute)
    if attribute in group.texts:
        reporter = Shape(f"{stem}_{word}_info", labels=labels, text=word)
        return (reporter, *(Shape(name, labels=labels, text=word) for name in _one_name(group)))
    more = _labels_of_confluent(group)
    name = f"{stem}_{word}"
    # Both as gauges: a counter of the longer name would be a family of the shorter one.
    names = (name, name.removesuffix(_TOTAL)) if name.endswith(_TOTAL) else (name,)
    shapes = tuple(Shape(one, labels=labels, more=more) for one in names)
    return (*shapes, *(Shape(one, labels=labels, text=word) for one in _one_name(group)))


def _one_name(group: Group) -> tuple[str, ...]:
    """Names under which Confluent has every text of the group, each as another label."""
    if group is CONNECTOR:
        return ("kafka_connect_connector_metrics",)
    return _APP if group is APP_INFO else ()


def _labels_of_confluent(group: Group) -> tuple[tuple[str, str], ...]:
    if group is WORKER:
        return (("connector", "aggregate"),)
    client_type = _CLIENT_TYPES.get(group.domain)
    return (("client_type", client_type),) if client_type else ()
