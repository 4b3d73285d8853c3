"""`/actuator/metrics` and `/actuator/prometheus`: meters by Micrometer's rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import CollectorRegistry
from prometheus_client.samples import Sample

from icestream.metrics.exposition import Exposition, exposition
from icestream.rest.actuator.meters import Kind, Measured, Meter

_LARGEST: Final = "MAX"


class BadTag(Exception):
    """One sentence, as Spring says it."""


def names(measured: Iterable[Measured]) -> dict[str, list[str]]:
    return {"names": sorted({one.meter.name for one in measured})}


def details(measured: Iterable[Measured], name: str, tags: Sequence[str]) -> dict[str, Any] | None:
    """One meter, of the series that have these tags (`key:value`); None if there is none."""
    wanted = dict(_tag(text) for text in tags)
    found = [one for one in measured if one.meter.name == name and wanted.items() <= dict(one.tags).items()]
    if not found:
        return None
    meter = found[0].meter
    said: dict[str, Any] = {"name": meter.name, "description": meter.description}
    if meter.unit is not None:
        said["baseUnit"] = meter.unit
    said["measurements"] = [
        {"statistic": statistic, "value": value} for statistic, value in _together(found).items()
    ]
    said["availableTags"] = _available(found, wanted)
    return said


def _tag(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon:
        raise BadTag(f"Each tag parameter must be in the form 'key:value' but was: {text}")
    return key, value


def _together(found: Sequence[Measured]) -> dict[str, float]:
    statistics = found[0].values
    return {
        name: max(each) if name == _LARGEST else sum(each)
        for name in statistics
        for each in [[one.values[name] for one in found]]
    }


def _available(found: Sequence[Measured], wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    values: dict[str, set[str]] = {}
    for one in found:
        for key, value in one.tags.items():
            if key not in wanted:
                values.setdefault(key, set()).add(value)
    return [{"tag": key, "values": sorted(those)} for key, those in sorted(values.items())]


# -- Prometheus --


class _Filtered:
    """A collector of prometheus_client: our meters and the worker's own metrics, or those that are named."""

    def __init__(
        self, measured: Sequence[Measured], worker: CollectorRegistry | None, included: Collection[str]
    ) -> None:
        self._measured = measured
        self._worker = worker
        self._included = included

    def describe(self) -> list[Family]:
        return []

    def collect(self) -> Iterator[Family]:
        for family in families(self._measured):
            yield from self._kept(family)
        for family in self._worker.collect() if self._worker is not None else ():
            yield from self._kept(family)

    def _kept(self, family: Family) -> Iterator[Family]:
        if not self._included or family.name in self._included:
            yield family
            return
        samples = [sample for sample in family.samples if sample.name in self._included]
        if samples:
            kept = Family(family.name, family.documentation, family.type, family.unit)
            kept.samples = samples
            yield kept


def scrape(
    measured: Sequence[Measured],
    worker: CollectorRegistry | None,
    included: Collection[str],
    accept: str = "",
    accept_encoding: str = "",
) -> Exposition:
    registry = CollectorRegistry(support_collectors_without_names=True)
    registry.register(_Filtered(measured, worker, included))
    return exposition(registry, accept, accept_encoding)


def families(measured: Sequence[Measured]) -> Iterator[Family]:
    meters = list(dict.fromkeys(one.meter for one in measured))
    for meter in meters:
        yield from _families(meter, [one for one in measured if one.meter is meter])


def prometheus_name(meter: Meter) -> str:
    """Dots are underscores, and the unit is at the end; a counter's `_total` is the format's business."""
    name = meter.name.replace(".", "_").replace("-", "_")
    unit = f"_{meter.unit}" if meter.unit else ""
    return name if name.endswith(unit) else f"{name}{unit}"


def _families(meter: Meter, measured: Sequence[Measured]) -> Iterator[Family]:
    name, text = prometheus_name(meter), meter.description
    if meter.kind is Kind.TIMER:
        summary, largest = Family(name, text, "summary"), Family(f"{name}_max", text, "gauge")
        for one in measured:
            labels = _labels(one)
            summary.samples.append(Sample(f"{name}_count", labels, one.values["COUNT"]))
            summary.samples.append(Sample(f"{name}_sum", labels, one.values["TOTAL_TIME"]))
            largest.samples.append(Sample(f"{name}_max", labels, one.values["MAX"]))
        yield from (summary, largest)
        return
    is_counter = meter.kind is Kind.COUNTER
    family = Family(name, text, "counter" if is_counter else "gauge")
    series, statistic = (f"{name}_total", "COUNT") if is_counter else (name, "VALUE")
    family.samples += [Sample(series, _labels(one), one.values[statistic]) for one in measured]
    yield family


def _labels(one: Measured) -> dict[str, str]:
    return {key.replace(".", "_"): value for key, value in one.tags.items()}
