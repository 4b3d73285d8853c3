"""Who a resource is: what all kinds have in `metadata`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Header:
    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str
    generation: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
