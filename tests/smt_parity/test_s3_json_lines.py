"""The lines of the S3 sink beside the classes that write them in Java: JsonConverter for Structs, Jackson for
all else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icestream.connectors.s3.formats.format import Rows
from icestream.connectors.s3.formats.json_lines import JsonLines
from icestream.records.schema import ConnectSchema, Kind
from tests.smt_parity.generators import Shape, json_maps, scalar_schemas, structs, values_of
from tests.smt_parity.given import Data, Json, Of, our_value
from tests.smt_parity.harness import Parity, generated
from tests.smt_parity.test_json_converter import meaning, meaning_of_singles

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def lines(given_data: Data, form: JsonLines) -> list[bytes]:
    value = our_value(given_data)
    assert value is not None and not form.unfit(value)
    text = form.encoder(None).write(Rows([value]))
    assert text.endswith(b"\n")
    return text[:-1].split(b"\n")


@st.composite
def struct_data(draw: st.DrawFn) -> Of:
    schema = draw(structs())
    schema = ConnectSchema(Kind.STRUCT, fields=schema.fields, name=schema.name)
    return Of(schema, draw(st.lists(values_of(schema), min_size=3, max_size=6)))


@generated(examples=60)
@given(given_data=struct_data(), form=st.sampled_from(["BASE64", "NUMERIC"]))
def test_structs_are_written_as_json_converter_does(parity: Parity, given_data: Of, form: str) -> None:
    """`json.decimal.format`."""
    config = {"schemas.enable": "false", "decimal.format": form}
    theirs = parity.java.from_connect(parity.java.converter(JSON_CONVERTER, config), given_data)
    ours = lines(given_data, JsonLines(numeric_decimals=form == "NUMERIC"))
    read: Any = meaning_of_singles if "FLOAT32" in repr(given_data) else meaning
    parity.compare("S3 JSON of Structs", [*map(read, ours)], [*map(read, theirs)], given=given_data)


@st.composite
def scalar_data(draw: st.DrawFn) -> Of:
    schema = draw(scalar_schemas())
    schema = ConnectSchema(
        schema.kind, name=schema.name, version=schema.version, parameters=schema.parameters
    )
    return Of(schema, draw(st.lists(values_of(schema), min_size=3, max_size=6)))


@generated(examples=60)
@given(given_data=scalar_data())
def test_single_values_are_written_as_jackson_does(parity: Parity, given_data: Of) -> None:
    read: Any = meaning_of_singles if "FLOAT32" in repr(given_data) else meaning
    theirs = parity.java.jackson_lines(given_data)
    ours = lines(given_data, JsonLines())
    parity.compare("S3 JSON of values", [*map(read, ours)], [*map(read, theirs)], given=given_data)


@generated(examples=40)
@given(values=st.lists(json_maps(Shape(depth=3)), min_size=4, max_size=8))
def test_maps_are_written_as_jackson_does(parity: Parity, values: list[dict[str, Any]]) -> None:
    given_data = Json(values)
    theirs = [json.loads(line) for line in parity.java.jackson_lines(given_data)]
    ours = [json.loads(line) for line in lines(given_data, JsonLines())]
    parity.compare("S3 JSON of maps", ours, theirs, given=given_data)
