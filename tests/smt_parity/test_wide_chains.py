"""Chains of everything: predicates that part groups, keys, odd names, missing timestamps, lists and maps as
defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.transforms.cast import Cast
from icestream.transforms.drop_headers import DropHeaders
from icestream.transforms.extract_field import ExtractField
from icestream.transforms.filter import Filter
from icestream.transforms.flatten import Flatten
from icestream.transforms.groups import Side
from icestream.transforms.header_from import HeaderFrom
from icestream.transforms.hoist_field import HoistField
from icestream.transforms.insert_field import InsertField
from icestream.transforms.insert_header import InsertHeader
from icestream.transforms.mask_field import MaskField
from icestream.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from icestream.transforms.regex_router import RegexRouter
from icestream.transforms.replace_field import ReplaceField
from icestream.transforms.set_schema_metadata import SetSchemaMetadata
from icestream.transforms.timestamp_converter import TimestampConverter
from icestream.transforms.timestamp_router import TimestampRouter
from icestream.transforms.value_to_key import ValueToKey
from tests.smt_parity.generators import Shape, givens, structs, values_of
from tests.smt_parity.given import Given, Of
from tests.smt_parity.harness import Parity, Smt, Test, generated

NAMES: Final = ("a", "b", 'q"\\', "ü\n")
SHAPE: Final = Shape(names=NAMES, depth=3, rows=8)
ROUTED: Final = Test(TopicNameMatches, {"pattern": ".*-(x|2025.*)"})
STEPS: Final = [
    Smt(Cast, {"spec": "a:int8,b:string"}),
    Smt(Cast, {"spec": "b:float32"}, Side.KEY),
    Smt(DropHeaders, {"headers": "h"}, None),
    Smt(ExtractField, {"field": "a"}),
    Smt(ExtractField, {"field": 'q"\\.a', "field.syntax.version": "V2"}),
    Smt(ExtractField, {"field": "b"}, Side.KEY),
    Smt(Flatten, {"delimiter": "_"}),
    Smt(Flatten, {"delimiter": ""}),
    Smt(Flatten, {"delimiter": "."}, Side.KEY),
    Smt(HeaderFrom, {"fields": "a,b", "headers": "h,i", "operation": "move"}),
    Smt(HeaderFrom, {"fields": 'q"\\', "headers": "h", "operation": "copy"}, Side.KEY),
    Smt(HoistField, {"field": "a"}),
    Smt(HoistField, {"field": 'q"\\'}, Side.KEY),
    Smt(
        InsertField,
        {"timestamp.field": "a", "partition.field": "b", "static.field": "s", "static.value": "x"},
    ),
    Smt(InsertField, {"offset.field": "o", "timestamp.field": "t!"}, Side.KEY),
    Smt(InsertHeader, {"header": "h", "value.literal": "1.5"}, None),
    Smt(MaskField, {"fields": "a"}),
    Smt(MaskField, {"fields": 'b,q"\\', "replacement": "7"}),
    Smt(MaskField, {"fields": "b"}, Side.KEY),
    Smt(RegexRouter, {"regex": "(.*)s", "replacement": "$1-x"}, None),
    Smt(ReplaceField, {"renames": 'a:b,b:a,q"\\:z'}),
    Smt(ReplaceField, {"exclude": "b"}, Side.KEY),
    Smt(ReplaceField, {"include": 'a,q"\\'}),
    Smt(SetSchemaMetadata, {"schema.version": "5"}),
    Smt(SetSchemaMetadata, {"schema.version": "6"}, Side.KEY),
    Smt(TimestampConverter, {"field": "a", "target.type": "Timestamp", "format": "yyyy-MM-dd"}),
    Smt(TimestampConverter, {"field": "b", "target.type": "unix", "format": "yyyy-MM-dd"}, Side.KEY),
    Smt(TimestampConverter, {"target.type": "string", "format": "yyyy-MM-dd"}),
    Smt(TimestampRouter, {"topic.format": "${topic}-${timestamp}"}, None),
    Smt(ValueToKey, {"fields": 'a,q"\\'}, None),
    Smt(Filter, {}, None, ROUTED),
]
PREDICATES: Final = [None, None, Test(RecordIsTombstone), Test(HasHeaderKey, {"name": "h"}), ROUTED]


@st.composite
def steps(draw: st.DrawFn) -> list[Smt]:
    made = []
    for one in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5)):
        predicate = one.predicate or draw(st.sampled_from(PREDICATES))
        made.append(replace(one, predicate=predicate, negate=predicate is not None and draw(st.booleans())))
    return made


def defaulted(draw: st.DrawFn, schema: ConnectSchema) -> ConnectSchema:
    """With defaults of lists and maps, too; of structs JsonConverter refuses them."""
    fields = tuple(Field(one.name, defaulted(draw, one.schema)) for one in schema.fields)
    schema = replace(schema, fields=fields)
    if schema.kind not in (Kind.ARRAY, Kind.MAP) or draw(st.booleans()):
        return schema
    default = draw(values_of(replace(schema, optional=False)))
    return replace(schema, default=dict(default) if schema.kind is Kind.MAP else default)


@st.composite
def with_defaults(draw: st.DrawFn) -> Given:
    schema = defaulted(draw, draw(structs(replace(SHAPE, depth=2))))
    key = defaulted(draw, draw(structs(replace(SHAPE, depth=2))))
    count = draw(st.integers(1, 6))
    return Given(
        Of(schema, draw(st.lists(values_of(schema), min_size=count, max_size=count))),
        Of(key, draw(st.lists(values_of(key), min_size=count, max_size=count))),
    )


@st.composite
def timed(draw: st.DrawFn, records: st.SearchStrategy[Given]) -> Given:
    one: Given = draw(records)
    moment = st.none() | st.integers(1_735_000_000_000, 1_800_000_000_000)
    return replace(one, timestamps=draw(st.lists(moment, min_size=len(one), max_size=len(one))))


@generated(examples=200)
@given(chain=steps(), records=timed(givens(SHAPE, headers=True)))
def test_anything(parity: Parity, chain: list[Smt], records: Given) -> None:
    # Java's router prints the whole record when its timestamp is missing.
    routed = any(step.ours is TimestampRouter for step in chain)
    parity.check(chain, records, subject="wide chains", reasons=not routed)


@generated(examples=100)
@given(chain=steps(), records=with_defaults())
def test_structs_with_defaults(parity: Parity, chain: list[Smt], records: Given) -> None:
    parity.check(chain, records, subject="wide chains")
