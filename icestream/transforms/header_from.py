"""`HeaderFrom`: fields of the key or value are copied or moved into headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Header, Records
from icestream.records.values import Fields, Typed
from icestream.transforms.failures import GroupFailed, refused_setting, schema_text
from icestream.transforms.groups import Picked, Side, absent_as_null, all_failed, merged, without_failed
from icestream.transforms.structs import (
    full_struct_column,
    pick_fields,
    read_fields,
    required_null_failures,
    with_fields,
)

_MOVE: Final = "move"


@dataclass(frozen=True)
class HeaderFrom:
    side: Side
    fields: Sequence[str]
    headers: Sequence[str]
    operation: str
    replace_null_with_default: bool = True

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        fields, headers = tuple(settings["fields"]), tuple(settings["headers"])
        if len(fields) != len(headers):
            problem = "'fields' config must have the same number of elements as 'headers' config."
            raise refused_setting("fields", problem)
        return cls(side, fields, headers, settings["operation"], settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        purpose, defaults = f"header {self.operation}", self.replace_null_with_default
        try:
            groups = pick_fields(records, self.side, self.fields, purpose, defaults=defaults)
            return merged([self._with_headers(group) for group in groups])
        except GroupFailed as failed:
            return all_failed(records, failed.failure)

    def _with_headers(self, group: Picked) -> Applied:
        values = [*map(absent_as_null, group.values)]
        headers = tuple(map(Header, self.headers, values))
        records = replace(group.records, headers=(*group.records.headers, *headers))
        failed: dict[int, Failure] = {}
        if self.operation == _MOVE:
            records, failed = self._without_fields(records)
        for one in values:
            failed = _null_headers(one) | failed
        return without_failed(records, failed)

    def _without_fields(self, records: Records) -> tuple[Records, dict[int, Failure]]:
        value = self.side.get(records)
        if isinstance(value, Fields):
            return self.side.put(records, value.put(dict.fromkeys(self.fields))), {}
        assert isinstance(value, Column) and value.schema is not None
        columns = read_fields(value, defaults=self.replace_null_with_default)
        stay = [name for name in columns if name not in self.fields]
        schema = with_fields(value.schema, [(name, value.schema[name]) for name in stay])
        arrays = [columns[name].values for name in stay]
        smaller = self.side.put(records, full_struct_column(schema, arrays, len(records)))
        return smaller, required_null_failures(schema, arrays)


def _null_headers(value: Typed) -> dict[int, Failure]:
    schema = value.schema if isinstance(value, Column) else None
    if not isinstance(value, Column) or schema is None or schema.optional or not value.values.null_count:
        return {}
    why = Failure(f"A null value requires an optional schema but was {schema_text(schema)}")
    return dict.fromkeys(np.flatnonzero(value.nulls).tolist(), why)
