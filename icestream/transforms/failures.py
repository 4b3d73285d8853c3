"""How transforms fail a whole group of records or refuse a setting, and what most of them require of keys and
values, in Java's words."""

from __future__ import annotations

from typing import Final

import numpy as np

from icestream.api.errors import ConfigError, Problem
from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.records import Failure
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Typed, Value

CONNECT_EXCEPTION: Final = "org.apache.kafka.connect.errors.ConnectException"
SCHEMA_BUILDER_EXCEPTION: Final = "org.apache.kafka.connect.errors.SchemaBuilderException"


class GroupFailed(Exception):
    """Every record of a group fails. Raised and caught within one transform."""

    def __init__(self, why: str | Failure, exception: str | None = None) -> None:
        if isinstance(why, str):
            why = Failure(why) if exception is None else Failure(why, exception)
        super().__init__(why.reason)
        self.failure = why


def values_failed(value: Typed, failure: Failure) -> dict[int, Failure]:
    """The positions that are not null, each with the failure."""
    rows = np.flatnonzero(~value.nulls).tolist() if isinstance(value, Column) else range(len(value))
    return dict.fromkeys(rows, failure)


def refused_setting(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])


def invalid_setting(key: str, value: object, reason: str) -> ConfigError:
    return refused_setting(key, f"Invalid value {value} for configuration {key}: {reason}")


def is_null(value: Value) -> bool:
    """Of a key or value as a transform gets it: null in all rows, or in none."""
    return value is None or (isinstance(value, Column) and value.values.null_count == len(value))


def has_schema(value: Value) -> bool:
    return isinstance(value, Column) and value.schema is not None


def not_a_map(value: Value, purpose: str) -> Failure:
    found = java_class(value)
    return Failure(f"Only Map objects supported in absence of schema for [{purpose}], found: {found}")


def not_a_struct(value: Value, purpose: str) -> Failure:
    return Failure(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")


def require_map(value: Value, purpose: str) -> Fields:
    if isinstance(value, Fields):
        return value
    raise GroupFailed(not_a_map(value, purpose))


def require_struct(value: Value, purpose: str) -> tuple[Column, ConnectSchema]:
    if isinstance(value, Column) and not is_null(value):
        schema = value.schema
        if schema is not None and schema.kind is Kind.STRUCT:
            return value, schema
    raise GroupFailed(not_a_struct(value, purpose))


def schema_text(schema: ConnectSchema) -> str:
    """As Java prints a schema."""
    return f"Schema{{{schema.name}:{schema.kind}}}" if schema.name is not None else f"Schema{{{schema.kind}}}"
