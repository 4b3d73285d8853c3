"""TimestampConverter: a field, or the whole value, as text, Unix time, Date, Time or Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.records.column import Column, nulls
from icestream.records.java_classes import java_class
from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Flags
from icestream.records.schema import (
    DATE,
    DECIMAL,
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
from icestream.transforms.date_patterns import DAY, UnsupportedLetter
from icestream.transforms.dates import DateFormat, milliseconds
from icestream.transforms.failures import (
    CONNECT_EXCEPTION,
    GroupFailed,
    has_schema,
    invalid_setting,
    is_null,
    refused_setting,
    schema_text,
    values_failed,
)
from icestream.transforms.groups import Changed, Side, all_failed, without_failed
from icestream.transforms.structs import SchemaCache, change_fields, with_fields

_PURPOSE: Final = "converting timestamp formats"
_TARGETS: Final[Mapping[str, ConnectSchema]] = {
    "string": STRING,
    "unix": ConnectSchema(Kind.INT64),
    "Date": date(),
    "Time": time(),
    "Timestamp": timestamp(),
}
_LOGICAL: Final = (TIMESTAMP, DATE, TIME)
_PER_SECOND: Final[Mapping[str, int]] = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}
_LEAST, _MOST = -(2**63), 2**63 - 1
_NO_FORMAT: Final = Failure("TimestampConverter reads text only with the option format")


@dataclass(frozen=True)
class TimestampConverter:
    side: Side
    target: str
    name: str = ""
    """Empty: the whole value."""
    format: DateFormat | None = None
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
            if is_null(value):
                return Applied([self._of_null(records)])
            if self.name:
                return change_fields(
                    records,
                    self.side,
                    {self.name: self._changed},
                    _PURPOSE,
                    schema_after=self._schema_after,
                    defaults=self.replace_null_with_default,
                )
            assert value is not None
            changed = self._changed(value)
            assert isinstance(changed.value, Column)
            return without_failed(self.side.put(records, changed.value), changed.failed)
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _of_null(self, records: Records) -> Records:
        value = self.side.get(records)
        if value is None:
            return records
        if not has_schema(value):
            return self.side.put(records, None)
        assert isinstance(value, Column) and value.schema is not None
        if self.name:
            return self.side.put(records, nulls(len(records), self._schema_after(value.schema)))
        _require_timestamp(value.schema)
        return self.side.put(records, nulls(len(records), self._target(value.schema)))

    def _changed(self, value: Typed) -> Changed:
        """Without a schema, a timestamp is what its Java class says."""
        if isinstance(value, Column) and value.schema is not None:
            _require_timestamp(value.schema)
            schema = self._target(value.schema)
            values, failed = self._converted(value.values, schema.arrow_type)
            return Changed(Column(values, schema), failed)
        if is_null(value):
            return Changed(nulls(len(value)))
        if not isinstance(value, Column) or value.values.type not in (MOMENT, pa.int64(), pa.string()):
            found = f"class {java_class(value)}"
            why = Failure(f"TimestampConverter does not support {found} objects as timestamps")
            return Changed(nulls(len(value)), values_failed(value, why))
        values, failed = self._converted(value.values, MOMENT)
        return Changed(Column(values), failed)

    def _target(self, schema: ConnectSchema) -> ConnectSchema:
        return replace(_TARGETS[self.target], optional=schema.optional)

    def _schema_after(self, schema: ConnectSchema) -> ConnectSchema:
        return self._schemas.get(schema, self._changed_schema)

    def _changed_schema(self, schema: ConnectSchema) -> ConnectSchema:
        if schema.kind is not Kind.STRUCT:
            raise GroupFailed("Cannot list fields on non-struct type")
        fields = [
            (one.name, self._target(one.schema) if one.name == self.name else one.schema)
            for one in schema.fields
        ]
        changed = replace(with_fields(schema, fields), optional=schema.optional)
        return changed if schema.default is None else replace(changed, default=self._default(schema, changed))

    def _default(self, schema: ConnectSchema, changed: ConnectSchema) -> Any:
        if self.name not in schema:
            return schema.default
        _require_timestamp(schema[self.name])
        before = pa.array([schema.default.get(self.name)], schema[self.name].arrow_type)
        after, failed = self._converted(before, changed[self.name].arrow_type)
        for failure in failed.values():
            raise GroupFailed(failure)
        return {**schema.default, self.name: after[0].as_py()}

    def _converted(self, values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mapping[int, Failure]]:
        """To the target; what is a java.util.Date there, in the given type."""
        moments, failed = self._moments(values)
        match self.target:
            case "string":
                assert self.format is not None
                return self.format.format(moments), failed
            case "unix":
                return _scaled(moments, "milliseconds", self.precision), failed
            case "Date":
                moments = pc.subtract(moments, _time_of_day(moments))
            case "Time":
                moments = _time_of_day(moments)
        return _in_type(moments, kind), failed

    def _moments(self, values: pa.Array) -> tuple[pa.Array, Mapping[int, Failure]]:
        """Text, Unix time or any java.util.Date as milliseconds since 1970."""
        if pt.is_integer(values.type):
            return _scaled(values, self.precision, "milliseconds"), {}
        if not pt.is_string(values.type):
            return milliseconds(values), {}
        if self.format is None:
            return pa.nulls(len(values), pa.int64()), values_failed(Column(values), _NO_FORMAT)
        moments, bad = self.format.parse(values)
        return moments, {row: _unparsable(values[row].as_py(), self.format.pattern) for row in bad}


def _format(pattern: str) -> DateFormat:
    try:
        return DateFormat.of(pattern)
    except UnsupportedLetter as error:
        raise invalid_setting("format", pattern, str(error)) from None
    except ValueError as error:
        needed = "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps"
        # Java mixes up the arguments of its exception
        wrong = f"Invalid value java.lang.IllegalArgumentException: {error} for configuration {needed}"
        raise refused_setting("format", f"{wrong}: {pattern}") from None


def _require_timestamp(schema: ConnectSchema) -> None:
    is_plain = schema.kind in (Kind.STRING, Kind.INT64) and schema.name != DECIMAL
    if schema.name not in _LOGICAL and not is_plain:
        what = f"Schema {schema_text(schema)} does not correspond to a known timestamp type format"
        raise GroupFailed(what, CONNECT_EXCEPTION)


def _unparsable(text: str, pattern: str) -> Failure:
    return Failure(f"Could not parse timestamp: value ({text}) does not match pattern ({pattern})")


def _time_of_day(moments: pa.Array) -> pa.Array:
    numbers = moments.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(numbers % DAY, pa.int64(), mask=_nulls(moments))


def _in_type(moments: pa.Array, kind: pa.DataType) -> pa.Array:
    """A date beyond the range keeps the low bits of its day, as Java's `int` does."""
    if kind == MOMENT:
        return moments.cast(MOMENT)
    whole = pc.divide(moments, DAY) if pt.is_date(kind) else moments
    return whole.cast(pa.int32(), safe=False).cast(kind)


def _scaled(values: pa.Array, unit: str, wanted: str) -> pa.Array:
    """As java.util.concurrent.TimeUnit converts: cuts off towards zero, stops at the ends of the range."""
    per_second, target = _PER_SECOND[unit], _PER_SECOND[wanted]
    if per_second >= target:
        return pc.divide(values, per_second // target)
    factor = target // per_second
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    most = _MOST // factor
    inside = np.clip(numbers, -most, most) * factor
    scaled = np.where(numbers > most, _MOST, np.where(numbers < -most, _LEAST, inside))
    return pa.array(scaled, pa.int64(), mask=_nulls(values))


def _nulls(values: pa.Array) -> Flags | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
