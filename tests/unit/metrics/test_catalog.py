"""The list of metrics keeps its own rules."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from icestream.metrics import catalog
from icestream.metrics.catalog import LABELS, METRICS, Kind, Metric
from icestream.metrics.job_families import BY_VALUE, CIRCUITS, HISTOGRAMS, NUMBERS

_FORBIDDEN = ("partition", "offset", "file", "path", "snapshot", "commit", "error", "exception", "key")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_allowed_labels_only_and_is_named_by_its_kind(metric: Metric) -> None:
    assert set(metric.labels) <= set(LABELS)
    assert re.fullmatch(r"(icestream|process|jvm)_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER)
    assert bool(metric.buckets) is (metric.kind is Kind.HISTOGRAM)
    assert metric.help.endswith(".") and not metric.name.endswith(("_avg", "_rate"))
    assert list(metric.buckets) == sorted(metric.buckets)


def test_no_label_grows_with_the_records() -> None:
    assert not [label for label in LABELS for word in _FORBIDDEN if word in label]


def test_names_are_there_once() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    # OpenMetrics has a counter without its suffix: another metric must not have that name.
    families = [name.removesuffix("_total") for name in names]
    assert len(set(families)) == len(families)


def test_every_metric_of_connectors_is_told_by_somebody() -> None:
    told = set(chain(NUMBERS, BY_VALUE, HISTOGRAMS, CIRCUITS))
    assert told == {metric for metric in METRICS if "connector" in metric.labels}


def test_every_place_where_a_record_can_fail_is_known() -> None:
    assert len(catalog.REJECTED_STAGES) == 8
