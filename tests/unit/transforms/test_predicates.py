"""Predicates: answers for a group, row by row where rows differ."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.records import Header
from icestream.records.schema import ConnectSchema, Kind
from icestream.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from tests.unit.transforms.groups import group, maps, structs


def test_header_names() -> None:
    records = replace(maps({}, {}), headers=(Header("h", Column(pa.array(["x", None]))),))
    assert HasHeaderKey.configured({"name": "h"}).test(records).tolist() == [True, True]
    assert HasHeaderKey.configured({"name": "H"}).test(records).tolist() == [False, False]


def test_tombstones() -> None:
    test = RecordIsTombstone.configured({}).test
    assert test(structs(ConnectSchema(Kind.INT32, optional=True), [1, None])).tolist() == [False, True]
    assert test(maps({})).tolist() == [False]
    assert test(group(None, 2)).tolist() == [True, True]


@pytest.mark.parametrize(
    ("pattern", "matches"), [("orders", True), ("ord", False), ("(?i)ORD.*", True), (r"\p{Lower}+", True)]
)
def test_topic_names(pattern: str, matches: bool) -> None:
    test = TopicNameMatches.configured({"pattern": pattern}).test
    assert test(group(None, 2, "orders")).tolist() == [matches, matches]


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid regex"):
        TopicNameMatches.configured({"pattern": "("})
