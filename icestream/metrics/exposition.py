"""Writes the answer to a scrape, in the format that its client takes. Called by REST, in a thread."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry

_VERSION: Final = "1.0.0"
_OPENMETRICS: Final = f"application/openmetrics-text; version={_VERSION}"
_LITTLE_WORK: Final = 1
"""Of gzip's levels: the numbers compress well by any."""


@dataclass(frozen=True)
class Exposition:
    body: bytes
    content_type: str
    is_gzip: bool = False


def exposition(
    registry: CollectorRegistry, accept: str = "", accept_encoding: str = "", names: Sequence[str] = ()
) -> Exposition:
    """Text 0.0.4, or OpenMetrics for who accepts it; `names` are the series to tell, none is all."""
    chosen: Collector = registry.restricted_registry(names) if names else registry
    encode, content_type = choose_encoder(_OPENMETRICS if _takes_openmetrics(accept) else "")
    try:
        body = encode(chosen)
    except UnicodeEncodeError:
        body = encode(_Encodable(chosen))
    if accepts_gzip(accept_encoding):
        return Exposition(gzip.compress(body, _LITTLE_WORK), content_type, is_gzip=True)
    return Exposition(body, content_type)


@dataclass(frozen=True)
class _Encodable(Collector):
    """The same with an escape where a label has half a surrogate pair: JSON can name a connector so, and
    UTF-8 has no form of it. Rare, so that other scrapes do not pay for it. Escapes, unlike one sign for all,
    keep series apart."""

    collected: Collector

    def collect(self) -> Iterator[Family]:
        for family in self.collected.collect():
            family.samples = [
                sample._replace(labels={name: _encodable(value) for name, value in sample.labels.items()})
                for sample in family.samples
            ]
            yield family


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _takes_openmetrics(accept: str) -> bool:
    """prometheus_client would read any version out of the header, and say that it had written that."""
    for item in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        if kind == "application/openmetrics-text":
            versions = [one.removeprefix("version=") for one in parameters if one.startswith("version=")]
            if versions in ([], [_VERSION]):
                return True
    return False


def accepts_gzip(accept_encoding: str) -> bool:
    for item in accept_encoding.split(","):
        name, _, parameters = item.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
