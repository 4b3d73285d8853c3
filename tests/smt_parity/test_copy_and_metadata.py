"""CopyValue and KafkaMetadataTransform beside Iceberg's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import OPTIONAL_STRING, ConnectSchema, Kind, struct
from icestream.transforms.copy_value import CopyValue
from icestream.transforms.kafka_metadata import KafkaMetadataTransform
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import TIMESTAMP, Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

NAMES = ("a", "b", "_kafka_metadata", "_kafka_metadata_topic", "ü")
SHAPE = Shape(names=NAMES)
METADATA = [
    {},
    {"nested": "true"},
    {"nested": "true", "field_name": "a", "external_field": "cluster,eu"},
    {"external_field": "cluster,"},
    {"field_name": "", "nested": "true"},
    {"field_name": "", "external_field": ",x"},
]
WRONG_METADATA = [
    {"external_field": "cluster"},
    {"external_field": ""},
    {"external_field": "a,b,c"},
    {"external_field": "topic,x", "nested": "true"},
    {"external_field": ",x", "nested": "true"},
]


@pytest.mark.parametrize(
    ("source", "target"), [("a", "b"), ("a", "new"), ("gone", "new"), ("a", "a"), ("a", "")]
)
def test_copies(parity: Parity, source: str, target: str) -> None:
    smt = Smt(CopyValue, {"source.field": source, "target.field": target}, None)
    maps = [{"a": 1, "b": 2}, {"a": "x"}, {"a": None}, {}, {"a": {"x": [1]}}, {"a": [1, {}]}]
    parity.check([smt], Given(Json([*maps, [1], "text", 5, 0.5, True, None])))
    schema = struct(
        ("a", ConnectSchema(Kind.INT32, optional=True, default=7)),
        ("b", OPTIONAL_STRING),
        name="n",
        version=3,
        doc="d",
        optional=True,
    )
    parity.check([smt], Given(Of(schema, [{"a": None, "b": "x"}, {"a": 1, "b": None}, None])))
    parity.check([smt], Given(Of(OPTIONAL_STRING, ["x", None])))


@generated(examples=60)
@given(
    source=st.sampled_from(NAMES),
    target=st.sampled_from(["new", "b"]),
    records=givens(SHAPE, headers=True),
)
def test_copies_anything(parity: Parity, source: str, target: str, records: Given) -> None:
    parity.check([Smt(CopyValue, {"source.field": source, "target.field": target}, None)], records)


@pytest.mark.parametrize("config", METADATA, ids=str)
def test_metadata(parity: Parity, config: dict[str, str]) -> None:
    smt = Smt(KafkaMetadataTransform, config, None)
    values = [{"a": 1}, {}, {"_kafka_metadata_topic": "mine"}, [1], "x", None]
    timestamps = [TIMESTAMP, None, 0, -1, 5, 6]
    parity.check([smt], Given(Json(values), timestamps=timestamps))
    schema = struct(("b", OPTIONAL_STRING), name="n", optional=True)
    parity.check([smt], Given(Of(schema, [{"b": "x"}, {"b": None}, None]), timestamps=[1, None, 2]))


@pytest.mark.parametrize("config", WRONG_METADATA, ids=str)
def test_metadata_that_is_refused(parity: Parity, config: dict[str, str]) -> None:
    parity.check([Smt(KafkaMetadataTransform, config, None)], Given(Json([{}])))


@generated(examples=60)
@given(config=st.sampled_from(METADATA), records=givens(SHAPE, headers=True))
def test_metadata_of_anything(parity: Parity, config: dict[str, str], records: Given) -> None:
    parity.check([Smt(KafkaMetadataTransform, config, None)], records)
