"""How transforms refuse a whole group of records, or a setting, in Java's words."""

from __future__ import annotations

from typing import Final

import numpy as np

from icestream.api.errors import ConfigError, Problem
from icestream.records.column import Column
from icestream.records.records import Failure
from icestream.records.values import Typed

CONNECT_EXCEPTION: Final = "org.apache.kafka.connect.errors.ConnectException"
SCHEMA_BUILDER_EXCEPTION: Final = "org.apache.kafka.connect.errors.SchemaBuilderException"


class Refused(Exception):
    """No record of a group can be taken. Raised and caught within one transform."""

    def __init__(self, reason: str, exception: str | None = None) -> None:
        super().__init__(reason)
        self.failure = Failure(reason) if exception is None else Failure(reason, exception)


def values_failed(value: Typed, failure: Failure) -> dict[int, Failure]:
    """The positions that are not null, each with the failure."""
    rows = np.flatnonzero(~value.nulls).tolist() if isinstance(value, Column) else range(len(value))
    return dict.fromkeys(rows, failure)


def refused_setting(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])


def invalid_setting(key: str, value: object, reason: str) -> ConfigError:
    return refused_setting(key, f"Invalid value {value} for configuration {key}: {reason}")
