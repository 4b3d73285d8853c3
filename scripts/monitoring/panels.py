"""Panels of a dashboard as facts, and the queries that fit a metric by its kind. `grafana.py` writes them as
Grafana reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icestream.metrics.catalog import Kind, Metric

PACE: Final = "$__rate_interval"
"""Grafana's: four scrapes, or what the zoom shows."""


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str
    is_instant: bool = False
    """For tables and single numbers: the value now, not its course."""


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    about: str = ""
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    limits: tuple[tuple[float, str], ...] = ()
    """From which value on a number has which colour."""
    stacked: bool = False
    columns: tuple[tuple[str, str, str], ...] = ()
    """Of a table: the letter of the query, its title, its unit."""


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


def panel_of(metric: Metric, chosen: str, labels: Sequence[str]) -> Panel:
    """What a metric says: `chosen` is the selector of its series, `labels` what tells them apart."""
    shown = tuple(_query(metric, chosen, labels))
    return Panel(_title(metric), shown, _unit(metric), metric.help, stacked=_is_state(metric))


def rate(metric: Metric, chosen: str, by: str = "") -> str:
    return f"sum{_by([by] if by else [])} (rate({metric.name}{{{chosen}}}[{PACE}]))"


def quantile(share: float, metric: Metric, chosen: str, labels: Sequence[str]) -> str:
    kept = ", ".join(["le", *labels])
    return f"histogram_quantile({share}, sum by ({kept}) (rate({metric.name}_bucket{{{chosen}}}[{PACE}])))"


def _query(metric: Metric, chosen: str, labels: Sequence[str]) -> list[Query]:
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    series = f"{metric.name}{{{chosen}}}"
    match metric.kind:
        case Kind.COUNTER:
            return [Query(f"sum{_by(labels)} (rate({series}[{PACE}]))", legend or "all")]
        case Kind.HISTOGRAM:
            return [
                Query(quantile(share, metric, chosen, labels), f"{legend} {name}".strip())
                for share, name in ((0.5, "half"), (0.95, "95 of 100"))
            ]
        case Kind.SUMMARY:
            sums = [
                f"sum{_by(labels)} (rate({metric.name}_{part}{{{chosen}}}[{PACE}]))"
                for part in ("sum", "count")
            ]
            return [Query(sums[0], f"{legend} time in a second".strip())]
    if metric.name.endswith("_timestamp_seconds") or metric.name == "process_start_time_seconds":
        return [Query(f"time() - max{_by(labels)} ({series})", legend or "age")]
    return [Query(f"sum{_by(labels)} ({series})", legend or "all")]


def _by(labels: Sequence[str]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


def _is_state(metric: Metric) -> bool:
    return metric.kind is Kind.GAUGE and metric.labels[-1:] == ("state",)


def _title(metric: Metric) -> str:
    name = metric.name.removeprefix("icestream_")
    endings = ("_timestamp_seconds", "_seconds_total", "_total", "_seconds", "_bytes")
    for ending in endings:
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    words = name.replace("_", " ")
    if metric.kind is Kind.COUNTER:
        words += " per second"
    elif metric.name.endswith("_timestamp_seconds") or metric.name == "process_start_time_seconds":
        words += ", time since"
    return words[:1].upper() + words[1:]


def _unit(metric: Metric) -> str:
    name = metric.name.removesuffix("_total")
    if metric.kind is Kind.COUNTER:
        if name.endswith("bytes") or "bytes_" in name:
            return "Bps"
        return "percentunit" if name.endswith("_seconds") else "cps"
    if name.endswith("_seconds"):
        return "s"
    return "bytes" if "bytes" in name else "short"
