"""The predicates beside the real classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import ConnectSchema, Kind
from icestream.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Test, generated

TOPICS = ["events", "my-prefix-events", "events.dlq", "", "Events", "evénts", "a\nb"]
REGEXES = [
    *("events", ".*", "my-prefix-.*", "(?i)EVENTS", "e[v]+e.*", "^events$", "[^.]*", "event", r"\w+", "a.b"),
    *("(?s)a.b", "é", "(my-prefix-)?events", "events|a"),
]
TESTS = [
    Test(RecordIsTombstone),
    Test(HasHeaderKey, {"name": "h"}),
    Test(TopicNameMatches, {"pattern": "e.*"}),
]


@pytest.mark.parametrize("pattern", REGEXES)
def test_topic_names(parity: Parity, pattern: str) -> None:
    test = Test(TopicNameMatches, {"pattern": pattern})
    for topic in TOPICS:
        parity.check_predicate(test, Given(Json([1, None]), topic=topic))


def test_tombstones(parity: Parity) -> None:
    parity.check_predicate(Test(RecordIsTombstone), Given(Json([None, {}, 0, "", [], False])))
    schema = ConnectSchema(Kind.INT32, optional=True, default=7)
    parity.check_predicate(Test(RecordIsTombstone), Given(Of(schema, [None, 0, 7])))


@pytest.mark.parametrize("name", ["h", "H", "other", "ü"])
def test_headers(parity: Parity, name: str) -> None:
    headers = [("h", Json([1, 2])), ("h", Json(["x", "y"])), ("ü", Json([None, None]))]
    parity.check_predicate(Test(HasHeaderKey, {"name": name}), Given(Json([1, 2]), headers=headers))
    parity.check_predicate(Test(HasHeaderKey, {"name": name}), Given(Json([1, 2])))


@generated(examples=40)
@given(
    test=st.sampled_from(TESTS),
    records=givens(Shape()),
)
def test_anything(parity: Parity, test: Test, records: Given) -> None:
    parity.check_predicate(test, records)
