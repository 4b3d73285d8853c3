"""From rows of the table to families of Prometheus: how a dialect says which names a row has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icestream.metrics.dialects.attributes import Group, Row

if TYPE_CHECKING:
    from prometheus_client import Metric


@dataclass(frozen=True)
class Shape:
    """One name of an attribute. A text is the value of the label `text`, and the sample is 1."""

    name: str
    kind: str = "gauge"
    labels: tuple[str, ...] = ()
    """One for each tag of the group."""
    more: tuple[tuple[str, str], ...] = ()
    """Labels that are the same for all."""
    text: str = ""
    factor: float = 1.0


Shapes = Callable[[Group, str], tuple[Shape, ...]]
"""The names of an attribute in a dialect; none: it is left out."""


def underscored(name: str) -> str:
    return name.replace("-", "_").replace(".", "_")


def _family_name(shape: Shape) -> str:
    """OpenMetrics names a family of counters without the `_total` of its samples."""
    return shape.name.removesuffix("_total") if shape.kind == "counter" else shape.name


def families(rows: Iterable[Row], shapes: Shapes) -> list[Metric]:
    """Samples of one name stand together, as both formats ask for."""
    from prometheus_client import Metric

    found: dict[str, Metric] = {}
    for group, tags, attribute, value in rows:
        for shape in shapes(group, attribute):
            family = found.get(shape.name)
            if family is None:
                said = f"{attribute} of Kafka's {group.name}."
                family = found[shape.name] = Metric(_family_name(shape), said, shape.kind)
            labels = dict(zip(shape.labels, tags, strict=True))
            if shape.more:
                labels.update(shape.more)
            if shape.text:
                labels[shape.text] = value if isinstance(value, str) else f"{value:.0f}"
                family.add_sample(shape.name, labels, 1.0)
            else:
                family.add_sample(shape.name, labels, float(value) * shape.factor)
    return list(found.values())
