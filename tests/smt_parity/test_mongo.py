"""MongoDebeziumTransform beside Iceberg's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import OPTIONAL_STRING, STRING, ConnectSchema, Kind, array, struct
from icestream.transforms.cdc.debezium import DebeziumTransform
from icestream.transforms.cdc.mongo_debezium import MongoDebeziumTransform
from tests.smt_parity.generators import short_doubles, texts
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

MODES: list[dict[str, str]] = [
    {},
    {"array_handling_mode": "array"},
    {"array_handling_mode": " Document "},
    {"array_handling_mode": "other"},
]
KEY = struct(("id", OPTIONAL_STRING), name="db.c.Key")
UPDATE = struct(
    ("removedFields", array(OPTIONAL_STRING, optional=True)),
    ("updatedFields", OPTIONAL_STRING),
    name="update",
    optional=True,
)
SOURCE = struct(("db", STRING), ("collection", STRING), ("table", OPTIONAL_STRING))
ENVELOPE = struct(
    ("before", OPTIONAL_STRING),
    ("after", OPTIONAL_STRING),
    ("updateDescription", UPDATE),
    ("source", SOURCE),
    ("op", OPTIONAL_STRING),
    ("ts_ms", ConnectSchema(Kind.INT64, optional=True, default=5)),
    name="db.c.Envelope",
    version=2,
    doc="lost",
)
OID = '{"$oid": "507F1f77bcf86cd799439011"}'
EXTENDED = [
    OID,
    '{"$date": 5}',
    '{"$date": "2026-11-15T00:00:00Z"}',
    '{"$date": "2026-11-15T00:00:00.123+01:00"}',
    '{"$date": {"$numberLong": "-5"}}',
    '{"$numberDecimal": "1.50"}',
    '{"$numberDecimal": "1e3"}',
    '{"$numberDecimal": "0.0000001"}',
    '{"$numberDecimal": "NaN"}',
    '{"$numberDouble": "1.5"}',
    '{"$numberDouble": "-Infinity"}',
    '{"$numberInt": "5"}',
    '{"$numberLong": "5"}',
    '{"$binary": "AQI=", "$type": "00"}',
    '{"$type": "00", "$binary": "AQI="}',
    '{"$binary": {"base64": "AQI=", "subType": "00"}}',
    '{"$uuid": "73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}',
    '{"$code": "f()"}',
    '{"$symbol": "s"}',
    '{"$timestamp": {"t": 5, "i": 1}}',
    '{"$timestamp": {"t": 4294967295, "i": 1}}',
    '{"$minKey": 1}',
    '{"$maxKey": 1}',
    '{"$undefined": true}',
    '{"$dbPointer": {"$ref": "c", "$id": {"$oid": "507f1f77bcf86cd799439011"}}}',
    '{"$other": 1}',
    '{"x": 1, "$oid": "507f1f77bcf86cd799439011"}',
    '{"$type": 5}',
    "null",
    "true",
    "1",
    "2147483648",
    "1.5",
    "NaN",
    '"text"',
    "{}",
    "[]",
    '{"a": {"b": 1, "c": [{"d": 1}]}}',
]
ARRAYS = [
    "[1, 2]",
    "[1, 2147483648]",
    "[null]",
    "[null, 1]",
    '["x", "y"]',
    "[[1], [2, 3]]",
    '[[1], ["x"]]',
    "[[1], []]",
    "[[]]",
    "[[[1]], [[2]]]",
    "[[1], 2]",
    '[{"a": 1}, {"b": "x"}]',
    '[{"a": 1}, {"a": "x"}]',
    '[{"a": 1}, {"a": null}]',
    '[{"a": null}, {"a": 1}]',
    '[{"a": null}, {"a": "x"}]',
    '[{"a": {}}, {"b": 1}]',
    '[{"a": []}, {"b": 1}]',
    '[{"a": {}}, {"a": []}]',
    '[{"a": {}}, {}]',
    '[{"a": []}]',
    "[{}, {}]",
    '[{"a": 1}, 5]',
    '[[{"a": 1}], [{"a": 2}]]',
    '[[{"a": 1}], [{"b": 2}]]',
    '[[1], [{"a": 1}]]',
    '[{"a": {"b": 1}}, {"a": {"b": 2}}]',
    '[{"a": {"b": 1}}, {"a": {"c": 2}}]',
    '[{"a": {"$symbol": "s"}}]',
    '[{"$date": 5}]',
    '[{"$timestamp": {"t": 5, "i": 1}}]',
    '[{"$oid": "507f1f77bcf86cd799439011"}]',
    '[{"$symbol": "s"}]',
    '[{"$binary": "AQI=", "$type": "00"}, {"$binary": "", "$type": "00"}]',
    '[{"$numberDecimal": "1.5"}]',
    "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
]
BROKEN = [
    "",
    "5",
    "[1]",
    "{",
    '{"a": }',
    "no json",
    OID,
    '{"a": {"$oid": "5f3b"}}',
    '{"a": 99999999999999999999}',
    '{"a": {"$oid": "507f1f77bcf86cd799439011", "x": 1}}',
    '{"a": {"$numberInt": 5}}',
    '{"a": {"$numberLong": "99999999999999999999"}}',
    '{"a": {"$numberDecimal": "12345678901234567890123456789012345"}}',
    '{"a": {"$date": true}}',
    '{"a": {"$code": 5}}',
    '{"": 1}',
]


def event(**parts: Any) -> dict[str, Any]:
    source = {"db": "d", "collection": "c", "table": "c"}
    nothing = {"before": None, "after": None, "updateDescription": None}
    return {**nothing, "source": source, "op": "u", "ts_ms": None, **parts}


def check(parity: Parity, config: dict[str, str], events: list[Any], keys: list[Any] | None = None) -> None:
    keys = [{"id": '"1004"'}] * len(events) if keys is None else keys
    records = Given(Of(ENVELOPE, events), key=Of(KEY, keys))
    parity.check([Smt(MongoDebeziumTransform, config, None)], records, more_is_fine=True)


@pytest.mark.parametrize("config", MODES, ids=str)
def test_documents(parity: Parity, config: dict[str, str]) -> None:
    documents = [f'{{"_id": 1, "a": {one}, "z": "x"}}' for one in [*EXTENDED, *ARRAYS]]
    check(parity, config, [event(after=one) for one in documents])
    check(parity, config, [event(before=one, after='{"b": 1}') for one in documents])
    check(parity, config, [event(before=f'{{"n": {{"m": {one}}}}}') for one in documents])


def test_keys(parity: Parity) -> None:
    ids = [*EXTENDED, *ARRAYS, '"x"', None]
    check(parity, {}, [event(after="{}")] * len(ids), [{"id": one} for one in ids])


def test_documents_that_are_broken(parity: Parity) -> None:
    records = Given(
        Of(ENVELOPE, [event(after=one) for one in BROKEN]), key=Of(KEY, [{"id": "1"}] * len(BROKEN))
    )
    parity.check([Smt(MongoDebeziumTransform, {}, None)], records, reasons=False)


def test_updates_that_tell_only_the_changes(parity: Parity) -> None:
    updates = [
        {"updatedFields": '{"a": 2, "c": [1]}', "removedFields": ["b", "nothing", None]},
        {"updatedFields": '{"_id": 7}', "removedFields": None},
        {"updatedFields": "{}", "removedFields": ["_id"]},
        {"updatedFields": None, "removedFields": []},
    ]
    befores = [None, '{"_id": 1, "a": 1, "b": "x"}']
    events = [event(before=before, updateDescription=one) for before in befores for one in updates]
    check(
        parity,
        {},
        [*events, event(), event(before=befores[1]), event(after="{}", updateDescription=updates[0])],
    )


@pytest.mark.parametrize("name", ["before", "after", "updateDescription"])
@pytest.mark.parametrize("kind", [None, Kind.INT32])
def test_envelopes_of_other_fields(parity: Parity, name: str, kind: Kind | None) -> None:
    odd = [] if kind is None else [(name, ConnectSchema(kind))]
    fields = [(one.name, one.schema) for one in ENVELOPE.fields if one.name != name]
    schema = struct(*fields, *odd, name="x.Envelope")
    value = {**event(before="{}"), name: 5}
    parity.check(
        [Smt(MongoDebeziumTransform, {}, None)],
        Given(Of(schema, [value]), key=Of(KEY, [{"id": "1"}])),
        reasons=False,
    )


def test_other_records_become_tombstones(parity: Parity) -> None:
    smt = Smt(MongoDebeziumTransform, {}, None)
    values = [event(after="{}")]
    other = struct(*((one.name, one.schema) for one in ENVELOPE.fields), name="other")
    header = [("h", Of(STRING, ["x"]))]
    key = Of(KEY, [{"id": "1"}])
    for given_records in (
        Given(Of(ENVELOPE, values), headers=header),
        Given(Of(ENVELOPE, values), key=Json([{"id": "1"}])),
        Given(Of(ENVELOPE, values), key=Of(STRING, ["x"])),
        Given(Of(other, values), key=key, headers=header),
        Given(Json([{"after": "{}"}]), key=key),
        Given(Json([None]), key=key),
        Given(Of(ENVELOPE.as_optional(), [None]), key=key),
        Given(Of(ENVELOPE, values), key=Of(ConnectSchema(Kind.INT32, name="a.Key"), [5])),
        Given(Of(ENVELOPE, values), key=Of(struct(("x", STRING), name="a.Key"), [{"x": "1"}])),
        Given(Of(ENVELOPE, values), key=Of(KEY.as_optional(), [None])),
        Given(
            Of(ENVELOPE, values), key=Of(struct(("id", ConnectSchema(Kind.INT64)), name="a.Key"), [{"id": 5}])
        ),
    ):
        parity.check([smt], given_records, reasons=False)


def test_debezium_goes_on_from_there(parity: Parity) -> None:
    steps = [Smt(MongoDebeziumTransform, {}, None), Smt(DebeziumTransform, {}, None)]
    events = [
        event(after='{"_id": 1, "a": {"b": [1]}}', ts_ms=7),
        event(before='{"_id": 1}', op="d", ts_ms=8),
    ]
    parity.check(steps, Given(Of(ENVELOPE, events), key=Of(KEY, [{"id": OID}] * 2)))


def documents(depth: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["_id", "a", "b", "ü"]), values(depth), max_size=4)


def values(depth: int) -> st.SearchStrategy[Any]:
    scalars = st.one_of(
        st.sampled_from(EXTENDED).map(lambda one: json.loads(one)),
        st.integers(-(2**63), 2**63 - 1),
        texts(),
        short_doubles(),
        st.none(),
    )
    if not depth:
        return scalars
    numbers = st.lists(st.integers(-5, 5), max_size=3)
    return st.one_of(
        scalars,
        documents(depth - 1),
        numbers,
        st.lists(documents(depth - 1), max_size=3),
        st.lists(numbers, max_size=3),
    )


@generated(examples=80)
@given(config=st.sampled_from(MODES[1:3]), found=st.lists(documents(), min_size=1, max_size=10))
def test_any_documents(parity: Parity, config: dict[str, str], found: list[Any]) -> None:
    written = [json.dumps(one, ensure_ascii=False) for one in found]
    updates = [{"updatedFields": one, "removedFields": ["a"]} for one in written]
    check(parity, config, [event(after=one) for one in written])
    check(
        parity,
        config,
        [event(before=one, updateDescription=more) for one, more in zip(written, updates[::-1], strict=True)],
    )
