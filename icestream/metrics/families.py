"""A metric of the catalog as prometheus_client has it: a family to which samples are added."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Exemplar as ShownExemplar
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from icestream.metrics.catalog import Kind, Metric
from icestream.metrics.histograms import Exemplar, Histogram


def family_of(metric: Metric) -> Family:
    """Without samples. OpenMetrics has counters under their name without `_total`."""
    return Family(metric.name.removesuffix("_total"), metric.help, metric.kind.value)


def add(
    family: Family,
    metric: Metric,
    labels: Mapping[str, str],
    value: float,
    exemplar: Exemplar | None = None,
) -> None:
    """A label without a value is left out, which is the same to Prometheus."""
    given = {name: text for name, text in labels.items() if text}
    family.samples.append(Sample(metric.name, given, value, None, _shown(exemplar)))


def add_histogram(family: Family, metric: Metric, labels: Mapping[str, str], histogram: Histogram) -> None:
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    counts = list(accumulate(histogram.counts))
    for place, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
        exemplar = _shown(histogram.exemplars.get(place))
        family.samples.append(Sample(f"{metric.name}_bucket", {**labels, "le": bound}, count, None, exemplar))
    family.samples.append(Sample(f"{metric.name}_count", dict(labels), counts[-1]))
    family.samples.append(Sample(f"{metric.name}_sum", dict(labels), histogram.sum))


def add_summary(
    family: Family, metric: Metric, labels: Mapping[str, str], count: float, total: float
) -> None:
    assert metric.kind is Kind.SUMMARY
    family.samples.append(Sample(f"{metric.name}_count", dict(labels), count))
    family.samples.append(Sample(f"{metric.name}_sum", dict(labels), total))


def _shown(exemplar: Exemplar | None) -> ShownExemplar | None:
    return ShownExemplar(exemplar.labels, exemplar.value, exemplar.at) if exemplar else None
