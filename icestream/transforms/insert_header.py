"""`InsertHeader`: the same header for all records, its value read from a literal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, nulls
from icestream.records.records import Applied, Header, Records
from icestream.transforms.literal_types import arrow_value
from icestream.transforms.literals import parsed_literal
from icestream.transforms.refusals import invalid_setting
from icestream.transforms.side import Side

_LITERAL: Final = "value.literal"


@dataclass(frozen=True)
class InsertHeader:
    name: str
    value: Column
    """One row."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings["header"], _one_row(settings[_LITERAL]))

    def apply(self, records: Records) -> Applied:
        values = self.value.take(np.zeros(len(records), np.int64))
        return Applied([replace(records, headers=(*records.headers, Header(self.name, values)))])


def _one_row(text: str) -> Column:
    try:
        literal = parsed_literal(text)
        if literal.schema is None:
            return nulls(1)
        value = arrow_value(literal.schema, literal.value)
        return Column(pa.array([value], literal.schema.arrow_type), literal.schema)
    except RecursionError:
        raise invalid_setting(_LITERAL, text[:80], "Lists and maps in it are nested too deep") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        reason = "Values in a list or map must be of one type, and numbers have at most 76 digits"
        raise invalid_setting(_LITERAL, text, reason) from None
