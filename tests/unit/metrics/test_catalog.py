"""The list of metrics keeps its own rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from icestream.metrics import catalog
from icestream.metrics.catalog import LABELS, METRICS, Kind, Metric
from icestream.metrics.job_families import BY_VALUE, CIRCUITS, HISTOGRAMS, NUMBERS
from tests.kit.faults import assert_no_faults

_FORBIDDEN = ("partition", "offset", "file", "path", "snapshot", "commit", "error", "exception", "key")


def test_metrics_have_allowed_labels_and_names_of_their_kind() -> None:
    assert_no_faults(f"{metric.name}: {fault}" for metric in METRICS for fault in faults_of(metric))


def test_a_metric_that_breaks_the_rules_is_found() -> None:
    good = Metric("icestream_batches_total", Kind.COUNTER, METRICS[0].part, "Total batches.", ("connector",))
    assert list(faults_of(good)) == []
    for changed in (
        {"labels": ("offset",)},
        {"name": "Other_total"},
        {"name": "icestream_batches"},
        {"kind": Kind.GAUGE},
        {"buckets": (1.0,)},
        {"help": "Total batches"},
        {"help": "Their number."},
        {"help": "How many ended."},
        {"name": "icestream_batches_rate", "kind": Kind.GAUGE},
        {"name": "icestream_seconds", "kind": Kind.HISTOGRAM, "buckets": (2.0, 1.0)},
        {"name": "icestream_seconds", "kind": Kind.HISTOGRAM},
    ):
        assert len(list(faults_of(replace(good, **changed)))) == 1, changed


def faults_of(metric: Metric) -> Iterator[str]:
    if other := set(metric.labels) - set(LABELS):
        yield f"the label {', '.join(sorted(other))} is not one of LABELS"
    if not re.fullmatch(r"(icestream|process|jvm)_[a-z_]+", metric.name):
        yield "its name is not made of small letters after icestream_, process_ or jvm_"
    if metric.name.endswith("_total") is not (metric.kind is Kind.COUNTER):
        yield "a counter ends with _total, and nothing else does"
    if metric.name.endswith(("_avg", "_rate")):
        yield "averages and rates are computed by who reads the metric"
    if bool(metric.buckets) is not (metric.kind is Kind.HISTOGRAM):
        yield "a histogram has buckets, and nothing else has"
    if list(metric.buckets) != sorted(metric.buckets):
        yield "its buckets are not in order"
    if re.match(r"(Their|Its|The same|How|When|These|They)\b", metric.help):
        yield "its help has no subject: it is read without that of its neighbours"
    if not metric.help.endswith("."):
        yield "its help does not end with a full stop"


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
