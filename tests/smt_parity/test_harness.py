"""The harness itself: what goes in comes out of both sides alike, and a difference is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given

from icestream.api.errors import ConfigError, Problem
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import (
    OPTIONAL_STRING,
    ConnectSchema,
    Kind,
    array,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from icestream.records.schema import date as date_schema
from icestream.transforms.groups import Side, all_failed
from tests.smt_parity.generators import givens
from tests.smt_parity.given import Data, Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, Tally, generated


@dataclass(frozen=True)
class Filter:
    """Drops all, as Java's does."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls()

    def apply(self, records: Records) -> Applied:
        return Applied([], dropped=records.rows.tolist())


@dataclass(frozen=True)
class RegexRouter:
    """Enough of it to give each record back as it is, or fail as a regular expression does."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls()

    def apply(self, records: Records) -> Applied:
        return Applied([records.take(np.arange(len(records))[::-1])])


@dataclass(frozen=True)
class ExtractField:
    """Always fails, for a reason of its own."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls()

    def apply(self, records: Records) -> Applied:
        return all_failed(records, Failure("no"))


@dataclass(frozen=True)
class Cast:
    """Refuses every config, for a reason of its own."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        raise ConfigError([Problem("spec", "no")])


AS_IT_IS = [Smt(RegexRouter, {"regex": "nothing like it", "replacement": "x"}, None)]
EVERYTHING = struct(
    ("i8", ConnectSchema(Kind.INT8, optional=True, default=3, doc="d", parameters=(("p", "q"), ("a", "b")))),
    ("f", ConnectSchema(Kind.FLOAT32, name="named", version=7)),
    ("d", decimal(3, optional=True, default=Decimal("1.250"))),
    ("day", date_schema(default=date(2026, 11, 15))),
    ("at", time()),
    ("ts", timestamp(optional=True)),
    ("b", ConnectSchema(Kind.BYTES)),
    ("m", map_of(OPTIONAL_STRING, ConnectSchema(Kind.INT32))),
    ("pairs", map_of(ConnectSchema(Kind.INT16), ConnectSchema(Kind.FLOAT64))),
    ("l", array(struct(("x", ConnectSchema(Kind.BOOLEAN, optional=True))), optional=True)),
    name="everything",
    version=2,
    optional=True,
)
A_ROW = {
    "i8": None,
    "f": 1.5,
    "d": Decimal("-7.001"),
    "day": -1,
    "at": 86_399_999,
    "ts": -(2**55),
    "b": b"\x00\xff",
    "m": [("k", 1), ("ü😀", -(2**31))],
    "pairs": [(1, 0.1)],
    "l": [{"x": True}, {"x": None}],
}


def test_schemaless_records_come_out_as_they_went_in(parity: Parity) -> None:
    maps = [{"a": 1, "b": [1.5, {"c": None}], "ü": "😀"}, {}]
    values = [*maps, [], [1, "x"], "s", 5, 2**63 - 1, 0.1, True, None]
    headers: list[tuple[str, Data]] = [
        ("h", Of(OPTIONAL_STRING, ["x"] * len(values))),
        ("h", Json([1] * len(values))),
    ]
    parity.check(AS_IT_IS, Given(Json(values), headers=headers), subject="harness")


def test_records_with_schemas_come_out_as_they_went_in(parity: Parity) -> None:
    bare = {**A_ROW, "d": None, "ts": None, "l": None, "m": [], "pairs": [], "i8": 127}
    key = Of(ConnectSchema(Kind.INT8), [1, -1, 2])
    parity.check(AS_IT_IS, Given(Of(EVERYTHING, [A_ROW, bare, None]), key=key), subject="harness")


def test_dropped_records_are_told(parity: Parity) -> None:
    parity.check([Smt(Filter, {}, None)], Given(Json([{}, 1, None])), subject="harness")


@generated(examples=20)
@given(records=givens())
def test_generated_records_come_out_as_they_went_in(parity: Parity, records: Given) -> None:
    parity.check(AS_IT_IS, records, subject="harness")


def test_differences_are_noticed_and_counted(parity: Parity) -> None:
    alone = Parity(parity.java, Tally())
    with pytest.raises(AssertionError, match=r"2 of 2 cases differ.*\n  Java: Row"):
        alone.check([Lying(Filter, {"regex": "a", "replacement": "b"}, None)], Given(Json([{}, 1])))
    assert alone.tally.lines() == ["parity Filter: 0 of 2 cases agree"]


def test_reasons_are_compared_unless_told_otherwise(parity: Parity) -> None:
    alone = Parity(parity.java, Tally())
    failing = Smt(ExtractField, {"field": "a"})
    with pytest.raises(AssertionError, match="Only Map objects supported"):
        alone.check([failing], Given(Json(["no map"])))
    alone.check([failing], Given(Json(["no map"])), reasons=False)


def test_a_config_that_java_refuses_must_be_refused_alike(parity: Parity) -> None:
    alone = Parity(parity.java, Tally())
    refusing = Smt(Cast, {"spec": "int8,int16"})
    with pytest.raises(AssertionError, match="Java: Cast"):
        alone.check([refusing], Given(Json([{}])))


class Lying(Smt):
    """Beside Java's RegexRouter."""

    @property
    def java_class(self) -> str:
        return "org.apache.kafka.connect.transforms.RegexRouter"
