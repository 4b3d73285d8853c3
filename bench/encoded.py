"""Records in one format, and the converter that reads them; made by the kinds of `bench.record_kinds`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icestream.records.records import Converter


@dataclass(frozen=True)
class Encoded:
    converter: Converter
    records: Sequence[bytes]
