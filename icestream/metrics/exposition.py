"""Writes the answer to a scrape, in the format that its client takes. Called by REST, in a thread."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

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
    try:
        encode, content_type = choose_encoder(accept)
    except ValueError:
        # A version in the header that is no number.
        encode, content_type = generate_latest, CONTENT_TYPE_PLAIN_0_0_4
    body = encode(chosen)
    if accepts_gzip(accept_encoding):
        return Exposition(gzip.compress(body, _LITTLE_WORK), content_type, is_gzip=True)
    return Exposition(body, content_type)


def accepts_gzip(accept_encoding: str) -> bool:
    for item in accept_encoding.split(","):
        name, _, parameters = item.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return parameters.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
