"""TimestampConverter: a field, or the whole value, as text, Unix time, Date, Time or Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from icestream.records.column import Column, nulls
from icestream.records.java_classes import java_class
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import (
    DATE,
    MOMENT,
    STRING,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    Kind,
    date,
    time,
    timestamp,
)
from icestream.records.values import Typed
from icestream.transforms.java_dates import JavaDateFormat
from icestream.transforms.refusals import CONNECT_EXCEPTION, Refused, refused_setting, values_failed
from icestream.transforms.requirements import is_null, require_map, require_struct, schema_text
from icestream.transforms.schema_cache import SchemaCache
from icestream.transforms.side import Changed, Side, all_failed, change_field, has_schema, kept
from icestream.transforms.structs import field_arrays, nulls_refused, rebuilt, rebuilt_column
from icestream.transforms.timestamps import Converted, from_moments, held, to_moments

_PURPOSE: Final = "converting timestamp formats"
_TARGETS: Final[Mapping[str, ConnectSchema]] = {
    "string": STRING,
    "unix": ConnectSchema(Kind.INT64),
    "Date": date(),
    "Time": time(),
    "Timestamp": timestamp(),
}
_LOGICAL: Final = (TIMESTAMP, DATE, TIME)


@dataclass(frozen=True)
class TimestampConverter:
    side: Side
    target: str
    name: str = ""
    """Empty: the whole value."""
    format: JavaDateFormat | None = None
    precision: str = "milliseconds"
    replace_null_with_default: bool = True
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        target, pattern = settings["target.type"], settings["format"]
        if target == "string" and not pattern.strip():
            needed = "TimestampConverter requires format option to be specified when using string timestamps"
            raise refused_setting("format", needed)
        return cls(
            side,
            target,
            settings["field"],
            _format(pattern) if pattern.strip() else None,
            settings["unix.precision"],
            settings["replace.null.with.default"],
        )

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        try:
            if has_schema(value):
                assert isinstance(value, Column)
                return self._whole(records, value) if not self.name else self._struct(records, value)
            return self._schemaless(records)
        except Refused as why:
            return all_failed(records, why.failure)

    def _schemaless(self, records: Records) -> Applied:
        value = self.side.get(records)
        if value is None or is_null(value):
            return Applied([self.side.put(records, None)])
        if not self.name:
            changed = self._changed(value)
            assert isinstance(changed.value, Column)
            return kept(self.side.put(records, changed.value), changed.failed)
        require_map(value, _PURPOSE)
        return change_field(records, self.side, self.name, self._changed)

    def _changed(self, value: Typed) -> Changed:
        """Without a schema, a timestamp is what its Java class says."""
        if is_null(value):
            return Changed(nulls(len(value)))
        if not isinstance(value, Column) or value.values.type not in (MOMENT, pa.int64(), pa.string()):
            found = f"class {java_class(value)}"
            why = Failure(f"TimestampConverter does not support {found} objects as timestamps")
            return Changed(nulls(len(value)), values_failed(value, why))
        values, failed = self._converted(value.values, MOMENT)
        return Changed(Column(values), failed)

    def _converted(self, values: pa.Array, moments: pa.DataType) -> Converted:
        """To the target; what is a java.util.Date there, in the given type."""
        raw, failed = to_moments(values, self.format, self.precision)
        target = from_moments(raw, self.target, self.format, self.precision)
        return (target if self.target in ("string", "unix") else held(target, moments)), failed

    def _whole(self, records: Records, value: Column) -> Applied:
        assert value.schema is not None
        _require_timestamp(value.schema)
        schema = replace(_TARGETS[self.target], optional=value.schema.optional)
        values, failed = self._converted(value.values, schema.arrow_type)
        return kept(self.side.put(records, Column(values, schema)), failed)

    def _struct(self, records: Records, value: Column) -> Applied:
        assert value.schema is not None
        if not is_null(value):
            require_struct(value, _PURPOSE)
        changed = self._schemas.get(value.schema, self._changed_schema)
        if is_null(value):
            return Applied([self.side.put(records, nulls(len(records), changed))])
        arrays = field_arrays(value, self.replace_null_with_default)
        failed: dict[int, Failure] = {}
        for position, one in enumerate(value.schema.fields):
            if one.name == self.name:
                _require_timestamp(one.schema)
                arrays[position], bad = self._converted(arrays[position], changed[one.name].arrow_type)
                failed = {**bad, **failed}
            failed = {**nulls_refused(one.name, Column(arrays[position], changed[one.name])), **failed}
        return kept(self.side.put(records, rebuilt_column(changed, arrays, len(records))), failed)

    def _changed_schema(self, schema: ConnectSchema) -> ConnectSchema:
        if schema.kind is not Kind.STRUCT:
            raise Refused("Cannot list fields on non-struct type")
        fields = [
            (one.name, self._target(one.schema) if one.name == self.name else one.schema)
            for one in schema.fields
        ]
        changed = replace(rebuilt(schema, fields), optional=schema.optional)
        return changed if schema.default is None else replace(changed, default=self._default(schema, changed))

    def _target(self, schema: ConnectSchema) -> ConnectSchema:
        return replace(_TARGETS[self.target], optional=schema.optional)

    def _default(self, schema: ConnectSchema, changed: ConnectSchema) -> Any:
        if self.name not in schema:
            return schema.default
        before = pa.array([schema.default.get(self.name)], schema[self.name].arrow_type)
        _require_timestamp(schema[self.name])
        after, failed = self._converted(before, changed[self.name].arrow_type)
        for failure in failed.values():
            raise Refused(failure.reason, failure.exception)
        return {**schema.default, self.name: after[0].as_py()}


def _format(pattern: str) -> JavaDateFormat:
    try:
        return JavaDateFormat.of(pattern)
    except ValueError as error:
        needed = "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps"
        # Java mixes up the arguments of its exception
        wrong = f"Invalid value java.lang.IllegalArgumentException: {error} for configuration {needed}"
        raise refused_setting("format", f"{wrong}: {pattern}") from None


def _require_timestamp(schema: ConnectSchema) -> None:
    if schema.name in _LOGICAL or schema.kind in (Kind.STRING, Kind.INT64):
        return
    raise Refused(
        f"Schema {schema_text(schema)} does not correspond to a known timestamp type format",
        CONNECT_EXCEPTION,
    )
